#include "bench/record/environment.h"

#include <hwy/highway.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "bench/build_info.h"
#include "bench/data_directory.h"
#include "bench/measure/device_clock.h"
#include "bench/measure/nvml.h"
#include "core/process.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\n\"");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n\"") - begin + 1));
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The value of the first "key<separator>value" line of a file such as /proc/meminfo; "" if none.
std::string field(const fs::path& path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto split = line.find(separator);
    if (split != std::string::npos && trim(std::string_view(line).substr(0, split)) == key) {
      return trim(std::string_view(line).substr(split + 1));
    }
  }
  return "";
}

/// The number that a text starts with; nothing for "max", an empty text or a number beyond 2^63.
std::optional<std::int64_t> leading_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const auto value = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || errno != 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_number(const fs::path& path) {
  return leading_number(read_text(path));
}

std::optional<std::int64_t> meminfo_bytes(std::string_view key) {
  const auto kib = leading_number(field("/proc/meminfo", key, ':'));
  if (!kib) return std::nullopt;
  return *kib * 1024;
}

/// The limit of the process's memory cgroup or one above it, and what that cgroup uses now without
/// the file cache, which the kernel reclaims first.
struct CgroupMemory {
  std::int64_t limit = 0;
  std::int64_t used = 0;
};

/// The file names of one version of cgroups.
struct CgroupFiles {
  const char* limit;
  const char* used;
  const char* cache;  ///< key in memory.stat
};
constexpr CgroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"};
constexpr CgroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

/// The limits from the process's own cgroup up to the root: v2 has "0::/path" in /proc/self/cgroup,
/// v1 "N:memory:/path". A container often sees its own cgroup as the root, so the root counts too.
std::vector<CgroupMemory> cgroup_memories() {
  std::vector<CgroupMemory> found;
  const auto walk = [&](const fs::path& root, fs::path path, const CgroupFiles& files) {
    for (;; path = path.parent_path()) {
      const fs::path directory = root / path.relative_path();
      const auto limit = read_number(directory / files.limit);
      // v1 writes "no limit" as the largest multiple of a page.
      if (limit && *limit < std::numeric_limits<std::int64_t>::max() / 2) {
        const auto cache = leading_number(field(directory / "memory.stat", files.cache, ' '));
        found.push_back(
            {*limit, read_number(directory / files.used).value_or(0) - cache.value_or(0)});
      }
      if (path == path.parent_path()) break;
    }
  };
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path path = line.substr(second + 1);
    if (controllers.empty()) walk("/sys/fs/cgroup", path, kVersion2);
    if (controllers == "memory") walk("/sys/fs/cgroup/memory", path, kVersion1);
  }
  return found;
}

/// The best SIMD target of this CPU that the program was compiled for; Highway orders them by bit.
std::string simd_target() {
  const auto targets = hwy::SupportedTargets() & static_cast<std::int64_t>(HWY_TARGETS);
  return hwy::TargetName(static_cast<std::int64_t>(targets & -targets));
}

json cpu() {
  json cpu{{"cores_usable", available_cpus()},
           {"cores_online", sysconf(_SC_NPROCESSORS_ONLN)},
           {"simd", simd_target()}};
  if (const auto model = field("/proc/cpuinfo", "model name", ':'); !model.empty()) {
    cpu["model"] = model;
  }
  if (const auto bytes = chosen_cache_flush_bytes()) cpu["cache_flush_bytes"] = *bytes;
  return cpu;
}

json memory() {
  json memory{{"available_bytes", available_memory()}};
  if (const auto total = meminfo_bytes("MemTotal")) memory["total_bytes"] = *total;
  if (const auto limit = cgroup_memory_limit()) memory["cgroup_limit_bytes"] = *limit;
  return memory;
}

json describe(const Nvml::Gpu& gpu) {
  json entry{{"model", gpu.model}, {"pci_bus_id", gpu.pci_bus_id}};
  if (gpu.memory_bytes) entry["memory_bytes"] = *gpu.memory_bytes;
  if (gpu.max_sm_clock_mhz) entry["max_sm_clock_mhz"] = *gpu.max_sm_clock_mhz;
  if (gpu.max_memory_clock_mhz) entry["max_memory_clock_mhz"] = *gpu.max_memory_clock_mhz;
  if (gpu.power_limit_w) entry["power_limit_w"] = *gpu.power_limit_w;
  return entry;
}

/// NVIDIA GPUs as NVML describes them, or by name as the driver lists them in /proc.
json gpus() {
  json gpus = json::array();
  if (const Nvml* nvml = Nvml::get()) {
    for (const Nvml::Gpu& gpu : nvml->gpus()) gpus.push_back(describe(gpu));
    return gpus;
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    gpus.push_back({{"model", field(entry.path() / "information", "Model", ':')}});
  }
  return gpus;
}

json collect() {
  const BuildInfo& build = build_info();
  json env{{"version", build.version},
           {"commit", build.commit},
           {"dirty", build.dirty},
           {"compiler", build.compiler},
           {"build_type", build.build_type},
           {"libraries", build.libraries},
           {"cpu", cpu()},
           {"memory", memory()},
           {"gpus", gpus()}};
  if (!build.sanitize.empty()) env["sanitize"] = build.sanitize;
  if (const auto os = field("/etc/os-release", "PRETTY_NAME", '='); !os.empty()) env["os"] = os;
  utsname system{};
  if (uname(&system) == 0) {
    env["kernel"] = std::string(system.release);
    env["arch"] = std::string(system.machine);
  }
  const Nvml* nvml = Nvml::get();
  if (const auto driver = nvml ? nvml->driver_version() : std::nullopt) {
    env["gpu_driver"] = *driver;
  } else if (const auto version = trim(read_text("/sys/module/nvidia/version")); !version.empty()) {
    env["gpu_driver"] = version;
  }
  if (const auto cuda = nvml ? nvml->cuda_version() : std::nullopt) env["gpu_driver_cuda"] = *cuda;
  return env;
}

}  // namespace

const json& collect_environment() {
  static const json environment = collect();
  return environment;
}

std::optional<std::int64_t> cgroup_memory_limit() {
  std::optional<std::int64_t> limit;
  for (const auto& cgroup : cgroup_memories()) {
    limit = std::min(limit.value_or(cgroup.limit), cgroup.limit);
  }
  return limit;
}

std::int64_t available_memory() {
  std::int64_t available = meminfo_bytes("MemAvailable").value_or(0);
  for (const auto& cgroup : cgroup_memories()) {
    available = std::min(available, std::max<std::int64_t>(0, cgroup.limit - cgroup.used));
  }
  return available;
}

std::optional<fs::path> find_gnuplot() {
  const fs::path path = find_program("gnuplot");
  if (path.empty()) return std::nullopt;
  return path;
}

std::optional<fs::path> find_plotly_js() {
  std::vector<fs::path> candidates;
  if (const char* chosen = std::getenv("LONGCA_PLOTLY_JS")) {
    candidates = {chosen};
  } else {
    const fs::path inside = "plotly/package_data/plotly.min.js";
    candidates = {
        data_directory() / "plotly.min.js", data_directory() / "build/deps/python" / inside,
        "/usr/local/lib/python3/dist-packages" / inside, "/usr/lib/python3/dist-packages" / inside};
  }
  std::error_code error;
  for (const auto& path : candidates) {
    if (fs::is_regular_file(path, error)) return path;
  }
  return std::nullopt;
}

std::vector<Tool> find_tools() {
  const char* python = std::getenv("LONGCA_PYTHON");
  return {
      {"python3", "kernels that come as Python packages", find_program(python ? python : "python3"),
       "apt-get install python3, or set LONGCA_PYTHON to a Python"},
      {"gnuplot", "report --plots and mask --plot", find_gnuplot().value_or(""),
       "apt-get install gnuplot-nox"},
      {"plotly.js", "the interactive plots of report --html", find_plotly_js().value_or(""),
       "scripts/setup fetches it; or set LONGCA_PLOTLY_JS to a plotly.min.js"},
  };
}

}  // namespace longca
