#include "core/error.h"
#include "parallel/executor/executor.h"
#ifdef LONGCA_WITH_CUDA
#include "parallel/executor/cuda/cuda_lanes.h"
#endif

namespace longca {
namespace {

/// Calls return when their work is done: there is nothing to wait for.
class CpuLanes final : public DeviceLanes {
 public:
  void begin(Stream /*stream*/) override {}
  void end() override {}
  Stream stream(Lane /*lane*/) override { return nullptr; }
  void mark(int /*op*/, Lane /*lane*/) override {}
  void wait(int /*op*/, Lane /*lane*/) override {}
};

}  // namespace

std::unique_ptr<DeviceLanes> make_device_lanes(DeviceKind device) {
#ifdef LONGCA_WITH_CUDA
  if (device == DeviceKind::cuda) return make_cuda_lanes();
#endif
  LONGCA_CHECK(device == DeviceKind::cpu, "this build has no lanes of {}", to_string(device));
  return std::make_unique<CpuLanes>();
}

}  // namespace longca
