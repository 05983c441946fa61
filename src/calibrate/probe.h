#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/measurement.h"
#include "core/device.h"

namespace longca::calibrate {

/// What is measured beside kernels.
enum class ProbeWhat : std::uint8_t {
  copy,     ///< `size` bytes from device memory to device memory
  product,  ///< two matrices of `size` rows and columns: bfloat16 on a GPU, float32 on a CPU
  launch,   ///< `size` kernels that do nothing, one behind the other; on a GPU only
};

struct Probe {
  ProbeWhat what = ProbeWhat::copy;
  std::int64_t size = 0;
  MeasureMode mode = MeasureMode::burst;

  bool operator==(const Probe&) const = default;
};

/// "copy:65536:burst", as the process that runs it is told.
std::string to_text(const Probe& probe);
/// Throws InputError for another text.
Probe parse_probe(std::string_view text);

/// A probe's time: the median of its repetitions.
struct ProbeTime {
  Probe probe;
  double ms = 0;
};

/// What is measured on a device. Large copies are beyond its caches, which are flushed before each
/// repetition, and take at most a quarter of `free_bytes`.
std::vector<Probe> standard_probes(DeviceKind kind, std::int64_t free_bytes);

}  // namespace longca::calibrate
