#include "bench/device_clock.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "bench/cpu_caches.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/thread_pool.h"
#ifdef LONGCA_WITH_CUDA
#include "bench/cuda/cuda_clock.h"
#endif

namespace longca {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

class CpuClock : public DeviceClock {
 public:
  CpuClock()
      : bytes_(cache_flush_bytes()), words_(static_cast<std::uint64_t*>(memory_.allocate(bytes_))) {
    std::memset(words_, 1, static_cast<std::size_t>(bytes_));
  }
  ~CpuClock() override { memory_.deallocate(words_, bytes_); }
  CpuClock(const CpuClock&) = delete;
  CpuClock& operator=(const CpuClock&) = delete;

  /// Reads more than the caches hold, every core its share: what they had is evicted, and written
  /// back where it was dirty.
  void flush_caches() override {
    const int parts = ThreadPool::global().threads();
    const std::int64_t words = bytes_ / 8;
    ThreadPool::global().parallel_for(parts, [&](std::int64_t part, int) {
      const auto* begin = words_ + words * part / parts;
      const auto* end = words_ + words * (part + 1) / parts;
      sink_.fetch_xor(std::accumulate(begin, end, std::uint64_t{0}), std::memory_order_relaxed);
    });
  }

  double time_once(const std::function<void()>& call) override {
    line_up();
    const auto begin = Clock::now();
    call();
    return milliseconds(Clock::now() - begin);
  }

  std::vector<double> time_back_to_back(const std::function<void()>& call, int count) override {
    std::vector<double> samples(static_cast<std::size_t>(count));
    line_up();
    auto begin = Clock::now();
    for (double& sample : samples) {
      call();
      const auto end = Clock::now();
      sample = milliseconds(end - begin);
      begin = end;
    }
    return samples;
  }

 private:
  MemoryTracker memory_;  ///< apart from the host's: the buffer is the runner's, not the case's
  std::int64_t bytes_;
  std::uint64_t* words_;
  std::atomic<std::uint64_t> sink_{0};  ///< keeps the reads from being left out
};

}  // namespace

std::function<void()> DeviceClock::as_graph(const std::function<void()>& /*call*/) {
  throw GraphRefused("mode graph replays a CUDA graph, which the CPU does not have");
}

double DeviceClock::now_s() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::unique_ptr<DeviceClock> make_device_clock(DeviceKind device) {
  if (device == DeviceKind::cpu) return std::make_unique<CpuClock>();
#ifdef LONGCA_WITH_CUDA
  return make_cuda_clock();
#else
  throw InputError(Device::available(device).reason);
#endif
}

}  // namespace longca
