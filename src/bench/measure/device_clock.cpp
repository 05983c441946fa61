#include "bench/measure/device_clock.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "core/device.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parse.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

template <typename T>
T read_value(const fs::path& path) {
  T value{};
  std::ifstream(path) >> value;
  return value;
}

/// "32768K", "32M" or a number.
std::int64_t parse_size(const std::string& text) {
  std::size_t end = 0;
  if (text.empty()) return 0;
  const std::int64_t number = std::stoll(text, &end);
  if (end == text.size()) return number;
  return text[end] == 'M' ? number << 20 : number << 10;
}

/// Bytes of all data caches of level 2 and above that this process's CPUs use, each counted once,
/// from /sys; 0 if they are not listed there. (sysconf also counts those of other processors.)
std::int64_t cpu_cache_bytes() {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 0;
  std::set<std::pair<int, std::string>> counted;  // level, the CPUs that share it
  std::int64_t bytes = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    std::error_code error;
    const fs::path folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache";
    for (const auto& cache : fs::directory_iterator(folder, error)) {
      const int level = read_value<int>(cache.path() / "level");
      if (level < 2 || read_value<std::string>(cache.path() / "type") == "Instruction") continue;
      const auto shared_by = read_value<std::string>(cache.path() / "shared_cpu_list");
      if (!counted.emplace(level, shared_by).second) continue;
      bytes += parse_size(read_value<std::string>(cache.path() / "size"));
    }
  }
  return bytes;
}

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

  /// Reads more than the caches hold, every core its share: evicts the old contents, and writes
  /// dirty lines back.
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
    const double ms = milliseconds(Clock::now() - begin);
    left_ = hash_of_watched();
    return ms;
  }

  std::vector<double> time_back_to_back(const std::function<void()>& call,
                                        const std::function<void()>& between, int count) override {
    std::vector<double> samples;
    samples.reserve(static_cast<std::size_t>(count));
    line_up();
    for (int i = 0; i < count; ++i) {
      if (i > 0) between();
      const auto begin = Clock::now();
      call();
      samples.push_back(milliseconds(Clock::now() - begin));
    }
    left_ = hash_of_watched();
    return samples;
  }

  bool changed_since() override { return hash_of_watched() != left_; }

 private:
  std::uint64_t hash_of_watched() const {
    Device& device = Device::get(DeviceKind::cpu);
    std::uint64_t hash = 0;
    for (const auto& bytes : watched()) hash = device.hash(hash, bytes.data(), std::ssize(bytes));
    return hash;
  }

  MemoryTracker memory_;  ///< not the host's: the buffer must not count as the case's
  std::int64_t bytes_;
  std::uint64_t* words_;
  std::uint64_t left_ = 0;  ///< hash of what is watched right behind the last timed call
  std::atomic<std::uint64_t> sink_{0};  ///< keeps the compiler from removing the reads
};

constexpr std::int64_t kLargestFlush = std::int64_t{512} << 20;

}  // namespace

std::optional<std::int64_t> chosen_cache_flush_bytes() {
  constexpr const char* kName = "LONGCA_CACHE_FLUSH_BYTES";
  const char* wanted = std::getenv(kName);
  if (wanted == nullptr) return std::nullopt;
  const std::int64_t bytes = parse_count(kName, wanted);
  if (bytes < 0 || bytes > kLargestFlush) {
    throw_input_error("{} is {}; it must be 0 to {}", kName, bytes, kLargestFlush);
  }
  return bytes;
}

std::int64_t cache_flush_bytes() {
  constexpr std::int64_t kUnknownCaches = std::int64_t{64} << 20;
  if (const auto chosen = chosen_cache_flush_bytes()) return *chosen;
  const std::int64_t caches = cpu_cache_bytes();
  return caches > 0 ? std::min(caches, kLargestFlush) : kUnknownCaches;
}

std::function<void()> DeviceClock::as_graph(const std::function<void()>& /*call*/) {
  throw GraphRefused("mode graph replays a CUDA graph, which the CPU does not have");
}

void DeviceClock::repeat(const std::function<void()>& call, double seconds) {
  for (const double end = now_s() + seconds; now_s() < end;) run(call);
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
