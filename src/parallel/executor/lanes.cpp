#include "parallel/executor/lanes.h"

#include <chrono>
#include <map>

#include "core/error.h"
#ifdef LONGCA_WITH_CUDA
#include "parallel/executor/cuda/cuda_lanes.h"
#endif

namespace longca {
namespace {

class CpuLanes final : public DeviceLanes {
 public:
  void begin(Stream /*stream*/) override {}
  void end() override {}
  Stream stream(Lane /*lane*/) override { return nullptr; }
  void mark(int /*op*/, Lane /*lane*/) override {}
  void wait(int /*op*/, Lane /*lane*/) override {}
};

class CpuMark final : public StreamMark {
 public:
  void record(Stream /*stream*/) override {}
  void hold_up(Stream /*stream*/) override {}
  bool reached() override { return true; }
  bool is_captured() const override { return false; }
};

class CpuLaneTimes final : public LaneTimes {
 public:
  void restart(Stream /*stream*/) override {
    times_.clear();
    zero_ = Clock::now();
  }
  void begins(int op, Stream /*stream*/) override { times_[op] = {op, now_ms(), 0}; }
  void ends(int op, Stream /*stream*/) override { times_[op].end_ms = now_ms(); }
  void finish(Stream /*stream*/) override {}
  PassState state() override { return PassState::ended; }
  bool exchanges_end_on_host() const override { return true; }
  std::vector<OpTime> times() override {
    std::vector<OpTime> all;
    for (const auto& [op, time] : times_) all.push_back(time);
    return all;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double now_ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - zero_).count();
  }

  Clock::time_point zero_;
  std::map<int, OpTime> times_;
};

}  // namespace

std::unique_ptr<DeviceLanes> make_device_lanes(DeviceKind device) {
#ifdef LONGCA_WITH_CUDA
  if (device == DeviceKind::cuda) return make_cuda_lanes();
#endif
  LONGCA_CHECK(device == DeviceKind::cpu, "this build has no lanes of {}", to_string(device));
  return std::make_unique<CpuLanes>();
}

std::unique_ptr<StreamMark> make_stream_mark(DeviceKind device) {
#ifdef LONGCA_WITH_CUDA
  if (device == DeviceKind::cuda) return make_cuda_mark();
#endif
  LONGCA_CHECK(device == DeviceKind::cpu, "this build has no streams of {}", to_string(device));
  return std::make_unique<CpuMark>();
}

std::unique_ptr<LaneTimes> make_lane_times(DeviceKind device) {
#ifdef LONGCA_WITH_CUDA
  if (device == DeviceKind::cuda) return make_cuda_lane_times();
#endif
  LONGCA_CHECK(device == DeviceKind::cpu, "this build has no lanes of {}", to_string(device));
  return std::make_unique<CpuLaneTimes>();
}

}  // namespace longca
