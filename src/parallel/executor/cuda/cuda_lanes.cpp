#include "parallel/executor/cuda/cuda_lanes.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "core/cuda/error.h"
#include "core/error.h"
#include "parallel/executor/cuda/event.h"

namespace longca {
namespace {

class CudaLanes : public DeviceLanes {
 public:
  CudaLanes() {
    Device::get(DeviceKind::cuda).stream();  // takes the device, in this thread too
    int lowest = 0;
    int highest = 0;
    LONGCA_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    LONGCA_CUDA(cudaStreamCreateWithPriority(&communication_, cudaStreamNonBlocking, highest));
  }
  ~CudaLanes() override {
    if (communication_ != nullptr) cudaStreamDestroy(communication_);
  }
  CudaLanes(const CudaLanes&) = delete;
  CudaLanes& operator=(const CudaLanes&) = delete;

  void begin(Stream stream) override {
    compute_ = static_cast<cudaStream_t>(stream);
    ends_.record(compute_);
    ends_.hold_up(communication_);
  }
  void end() override {
    ends_.record(communication_);
    ends_.hold_up(compute_);
  }
  Stream stream(Lane lane) override { return of(lane); }

  void mark(int op, Lane lane) override {
    const auto index = static_cast<std::size_t>(op);
    while (marks_.size() <= index) marks_.emplace_back();
    if (!marks_[index]) marks_[index] = std::make_unique<CudaEvent>();
    marks_[index]->record(of(lane));
  }
  void wait(int op, Lane lane) override {
    const auto index = static_cast<std::size_t>(op);
    LONGCA_CHECK(index < marks_.size() && marks_[index], "op {} is waited for, but not marked", op);
    marks_[index]->hold_up(of(lane));
  }

 private:
  cudaStream_t of(Lane lane) const { return lane == Lane::compute ? compute_ : communication_; }

  cudaStream_t compute_ = nullptr;  ///< the caller's
  cudaStream_t communication_ = nullptr;
  CudaEvent ends_;
  std::vector<std::unique_ptr<CudaEvent>> marks_;  ///< by op, null where nobody waits
};

}  // namespace

std::unique_ptr<DeviceLanes> make_cuda_lanes() {
  return std::make_unique<CudaLanes>();
}

}  // namespace longca
