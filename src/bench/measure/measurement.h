#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
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
/// "burst", "sustained", "graph": in the order of MeasureMode.
std::vector<std::string> measure_mode_names();
/// Throws InputError for another text, with the nearest name.
MeasureMode parse_measure_mode(std::string_view text);

/// What is timed, and what is done around it, outside of the times.
struct TimedWork {
  /// For mode graph what DeviceClock::as_graph made.
  std::function<void()> call;
  /// Before each repetition of a burst and each batch of back-to-back calls, and before the caches
  /// are flushed.
  std::function<void()> prepare = [] {};
  /// Between two calls of a batch; on a GPU it queues its work on the stream.
  std::function<void()> between = [] {};
  /// As soon as a repetition or a batch has ended, those of the warm-up included. False ends the
  /// measurement.
  std::function<bool()> check = [] { return true; };
  /// After a check that passed, as soon as the results are no longer looked at.
  std::function<void()> after_check = [] {};
  /// What `call` writes, for DeviceClock::watch.
  std::vector<std::span<const std::byte>> results = {};
  /// Another call, timed in turns with `call` so that both meet the same clock rate and heat: once
  /// after each checked repetition, or in a batch of the same length. Empty: none. Its results are
  /// not checked; it may write where `call` writes.
  std::function<void()> beside = {};
};

/// Seconds of calls without a pause until a GPU that comes to its power limit has settled.
inline constexpr double kSettled = 0.2;

struct MeasureOptions {
  MeasureMode mode = MeasureMode::burst;
  double time_limit_s = 1.0;
  /// Below StoppingRule::kMinSamples it goes on, up to here.
  double sample_budget_s = 10.0;
  double cool_down_ms = 1.0;
  /// Seconds after which no further repetition may end, however few there were: the cell would be
  /// killed for its time limit.
  double time_left_s = std::numeric_limits<double>::infinity();
  /// Duration of the same call before, which counts as warm-up.
  double warmed_s = 0.0;
  /// Time of one repetition just before, made as a burst's are. It counts as warm-up; one as long
  /// as the time limit is the first of a burst's samples.
  std::optional<double> repeated_ms = std::nullopt;
  /// Seconds of untimed calls without a pause before the first sample, for cells of which some are
  /// checked at length: after long checks the device is kept busy, and it must be as hot where
  /// there are none.
  double settle_s = 0;
  /// Of the lengths of batches, which a call must not be able to foresee; the same on all ranks.
  std::uint64_t seed = 0;
};

struct Measurement {
  bool checked = true;             ///< false: TimedWork::check ended it, and there are no times
  bool goes_on = false;            ///< likewise: DeviceClock::changed_since
  std::vector<double> samples_ms;  ///< every timed repetition, in order
  /// Of TimedWork::beside, in order: one for each sample, but for the first samples of long calls.
  std::vector<double> beside_ms;
  Stop stop = Stop::not_yet;
  double median_ms = 0;
  bool held = true;                        ///< launch time is not in the times (DeviceClock::held)
  std::optional<MedianInterval> interval;  ///< nothing below 6 samples
};

/// Warms up, then times `work.call` until the stopping rule or `work.check` ends it
/// (docs/guide/metrics.md, Time).
Measurement measure(DeviceClock& clock, const TimedWork& work, const MeasureOptions& options);

}  // namespace longca
