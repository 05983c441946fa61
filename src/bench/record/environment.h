#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace longca {

/// What a figure depends on beside its case: processor, memory, GPUs, system, compiler, libraries,
/// commit. The `env` object of every record, to which the runner adds its argv. Read once from
/// /proc and /sys (a few ms). What cannot be determined is absent.
///
/// Keys: version, commit, dirty, compiler, build_type, sanitize (if any), libraries {name:
/// version}, os, kernel, arch, cpu {model, cores_usable, cores_online, simd, cache_flush_bytes (if
/// chosen by hand)}, memory {total_bytes, available_bytes, cgroup_limit_bytes}, gpus [{model,
/// pci_bus_id, memory_bytes, max_sm_clock_mhz, max_memory_clock_mhz, power_limit_w}], gpu_driver,
/// gpu_driver_cuda (the version it supports).
const nlohmann::json& collect_environment();

/// Bytes that the process's cgroups (v2 or v1) allow it; nothing if there is no limit.
std::optional<std::int64_t> cgroup_memory_limit();
/// Bytes that this process may still take: MemAvailable, cut by what its cgroups leave.
std::int64_t available_memory();

/// A program or file that some verbs use when it is there.
struct Tool {
  std::string name;
  std::string used_for;        ///< one line
  std::filesystem::path path;  ///< empty if it was not found
  std::string install;         ///< what to do to get it
};

/// python3 ($LONGCA_PYTHON), gnuplot, plotly.js.
std::vector<Tool> find_tools();
/// gnuplot on the PATH.
std::optional<std::filesystem::path> find_gnuplot();
/// plotly.min.js: $LONGCA_PLOTLY_JS, what scripts/setup fetched, or the system's plotly package.
std::optional<std::filesystem::path> find_plotly_js();

}  // namespace longca
