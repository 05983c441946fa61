#include "bench/device_clock.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/error.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kUnknownCache = std::int64_t{64} << 20;
constexpr std::int64_t kLargestFlush = std::int64_t{512} << 20;

/// Bytes to walk so that neither the shared cache nor the cores' own ones keep anything older.
std::int64_t flush_bytes() {
  const std::int64_t shared = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::int64_t own = sysconf(_SC_LEVEL2_CACHE_SIZE);
  const std::int64_t all = std::max<std::int64_t>(shared, 0) +
                           std::max<std::int64_t>(own, 0) * ThreadPool::global().threads();
  return all > 0 ? std::min(all, kLargestFlush) : kUnknownCache;
}

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

class CpuClock : public DeviceClock {
 public:
  void flush_caches() override {
    // Not through the tracker of memory: this buffer is the runner's, not the case's.
    if (buffer_.empty()) buffer_.resize(static_cast<std::size_t>(flush_bytes()));
    const int parts = ThreadPool::global().threads();
    const std::int64_t lines = static_cast<std::int64_t>(buffer_.size()) / kCacheLine;
    ThreadPool::global().parallel_for(parts, [&](std::int64_t part, int) {
      for (std::int64_t i = lines * part / parts; i < lines * (part + 1) / parts; ++i) {
        buffer_[static_cast<std::size_t>(i * kCacheLine)] += 1;
      }
    });
  }

  double time_once(const std::function<void()>& call) override {
    const auto begin = Clock::now();
    call();
    return milliseconds(Clock::now() - begin);
  }

  std::vector<double> time_back_to_back(const std::function<void()>& call, int count) override {
    std::vector<double> samples(static_cast<std::size_t>(count));
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
  std::vector<std::uint8_t> buffer_;
};

}  // namespace

std::unique_ptr<DeviceClock> make_device_clock(DeviceKind device) {
  if (device != DeviceKind::cpu) throw_input_error("this build cannot time {}", to_string(device));
  return std::make_unique<CpuClock>();
}

}  // namespace longca
