#include "bench/cpu_caches.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>

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

}  // namespace

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

std::int64_t cache_flush_bytes() {
  constexpr std::int64_t kUnknownCaches = std::int64_t{64} << 20;
  constexpr std::int64_t kLargestFlush = std::int64_t{512} << 20;
  const std::int64_t caches = cpu_cache_bytes();
  return caches > 0 ? std::min(caches, kLargestFlush) : kUnknownCaches;
}

}  // namespace longca
