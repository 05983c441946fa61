#include "calibrate/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace longca::calibrate {
namespace {

constexpr std::array<std::pair<ProbeWhat, std::string_view>, 3> kProbeNames = {
    {{ProbeWhat::copy, "copy"}, {ProbeWhat::product, "product"}, {ProbeWhat::launch, "launch"}}};
constexpr std::array<std::pair<MeasureMode, std::string_view>, 2> kModeNames = {
    {{MeasureMode::burst, "burst"}, {MeasureMode::sustained, "sustained"}}};

constexpr std::int64_t kSmallCopy = std::int64_t{64} << 10;
constexpr std::int64_t kMinLargeCopy = std::int64_t{1} << 20;
constexpr std::int64_t kMaxCopyOnGpu = std::int64_t{1} << 30;
constexpr std::int64_t kMaxCopyOnCpu = std::int64_t{1} << 28;
constexpr std::int64_t kRowsOnGpu = 8192;
constexpr std::int64_t kRowsOnCpu = 1024;
constexpr std::int64_t kManyKernels = 65;

template <typename Value, std::size_t n>
std::string_view name_in(const std::array<std::pair<Value, std::string_view>, n>& names,
                         Value value) {
  return std::ranges::find(names, value, &std::pair<Value, std::string_view>::first)->second;
}

template <typename Value, std::size_t n>
Value value_in(const std::array<std::pair<Value, std::string_view>, n>& names,
               std::string_view name, std::string_view whole) {
  const auto found = std::ranges::find(names, name, &std::pair<Value, std::string_view>::second);
  if (found == names.end()) throw_input_error("'{}' in the probe '{}' is unknown", name, whole);
  return found->first;
}

}  // namespace

std::string to_text(const Probe& probe) {
  return fmt::format("{}:{}:{}", name_in(kProbeNames, probe.what), probe.size,
                     name_in(kModeNames, probe.mode));
}

Probe parse_probe(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.rfind(':');
  if (first == std::string_view::npos || first == second) {
    throw_input_error("the probe '{}' is not WHAT:SIZE:MODE, as in copy:65536:burst", text);
  }
  Probe probe;
  probe.what = value_in(kProbeNames, text.substr(0, first), text);
  probe.mode = value_in(kModeNames, text.substr(second + 1), text);
  const std::string_view size = text.substr(first + 1, second - first - 1);
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), probe.size);
  if (error != std::errc() || end != size.data() + size.size() || probe.size < 1) {
    throw_input_error("the size '{}' of the probe '{}' is not a whole number above 0", size, text);
  }
  return probe;
}

std::vector<Probe> standard_probes(DeviceKind kind, std::int64_t free_bytes) {
  const bool on_gpu = kind == DeviceKind::cuda;
  const std::int64_t large =
      std::clamp(free_bytes / 4, kMinLargeCopy, on_gpu ? kMaxCopyOnGpu : kMaxCopyOnCpu);
  const std::int64_t rows = on_gpu ? kRowsOnGpu : kRowsOnCpu;
  std::vector<Probe> probes = {{ProbeWhat::copy, kSmallCopy},
                               {ProbeWhat::copy, large - large % 64},
                               {ProbeWhat::product, rows},
                               {ProbeWhat::product, rows, MeasureMode::sustained}};
  if (on_gpu) {
    probes.push_back({ProbeWhat::launch, 1});
    probes.push_back({ProbeWhat::launch, kManyKernels});
  }
  return probes;
}

}  // namespace longca::calibrate
