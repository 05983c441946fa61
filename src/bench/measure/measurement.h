#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/device_clock.h"
#include "bench/measure/statistics.h"

namespace longca {

/// How the repetitions of a measurement follow each other.
enum class MeasureMode : std::uint8_t {
  burst,      ///< each from cold caches, after a pause
  sustained,  ///< back to back for at least a second
  graph,      ///< as a burst, each repetition replayed as a graph of the device
};
/// "burst", "sustained", "graph". Throws InputError for another text.
MeasureMode parse_measure_mode(std::string_view text);

struct MeasureOptions {
  MeasureMode mode = MeasureMode::burst;
  double time_limit_s = 1.0;
  double cool_down_ms = 1.0;
  /// Seconds after which no further repetition may end, however few there were: the cell would be
  /// killed for its time limit.
  double time_left_s = std::numeric_limits<double>::infinity();
  /// Duration of the same call before, which counts as warm-up.
  double warmed_s = 0.0;
  /// Time of one repetition just before, made as a burst's are. It counts as warm-up; one as long
  /// as the time limit is the first of a burst's samples.
  std::optional<double> repeated_ms = std::nullopt;
};

struct Measurement {
  std::vector<double> samples_ms;  ///< every timed repetition, in order
  Stop stop = Stop::not_yet;
  double median_ms = 0;
  bool held = true;                        ///< launch time is not in the times (DeviceClock::held)
  std::optional<MedianInterval> interval;  ///< nothing below 6 samples
};

/// Warms up, then times `call` until the stopping rule ends it (docs/guide/metrics.md, Time). For
/// mode graph `call` is what DeviceClock::as_graph made. In bursts `prepare` runs before every
/// repetition and before the caches are flushed; its time does not count.
Measurement measure(DeviceClock& clock, const std::function<void()>& call,
                    const std::function<void()>& prepare, const MeasureOptions& options);

}  // namespace longca
