#include "bench/measure/measurement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "core/error.h"
#include "core/nearest.h"

namespace longca {
namespace {

/// s until page faults, the ramp of the clock and the start of threads are over.
constexpr double kWarmUp = 0.1;
constexpr double kWarmUpShare = 0.2;      // at most this share of the time limit
constexpr double kMinSustained = 1.0;     // s
constexpr double kSustainedBatch = 0.05;  // s between two checks of the stopping rule
/// Of a batch only the last call is checked, and between checked calls others may run that are not.
/// So many are checked in a row before, fewer of those that take longer than kSettled, and so many
/// batches run, so that no call can be left out in a fixed turn.
constexpr int kCheckedInARow = 6;
constexpr int kCheckedLongCalls = 3;
constexpr int kMinBatches = 12;
/// A check that takes longer than kShortCheck rests the device. Its clock is then higher than that
/// of a kernel whose repetitions follow each other, up to kSettled s later: by 9 % at the power
/// limit of an H100. So a call shorter than kSettled runs again, untimed, for as long as the check
/// took.
constexpr double kShortCheck = 0.005;  // s

double warm_up_s(const MeasureOptions& options) {
  return std::min(kWarmUp, kWarmUpShare * options.time_limit_s);
}

/// Checks repetitions, and how long that and calls of TimedWork::beside took. Whether a call's work
/// went on is looked at last: it may come at any moment of the check, which leaves the results as
/// it found them.
class Checks {
 public:
  Checks(DeviceClock& clock, const TimedWork& work) : clock_(clock), work_(work) {}

  /// After a call, or a batch of calls, that took `call_ms` each.
  bool pass(double call_ms) {
    const double begin = clock_.now_s();
    const bool passed = work_.check();
    goes_on_ = clock_.changed_since();
    if (!passed || goes_on_) return false;
    work_.after_check();
    ++checked_;
    is_long_call_ = call_ms >= kSettled * 1e3;
    const double rested = clock_.now_s() - begin;
    had_long_check_ = had_long_check_ || rested > kShortCheck;
    if (rested > kShortCheck && !is_long_call_ && may_interrupt()) {
      clock_.repeat(work_.call, std::min(rested, kSettled));
    }
    spent_s_ += clock_.now_s() - begin;
    return true;
  }
  /// Whether enough calls were checked in a row for others to run between the next ones.
  bool may_interrupt() const {
    return checked_ >= (is_long_call_ ? kCheckedLongCalls : kCheckedInARow);
  }
  /// Whether the next call comes before those between which others run, and so is no sample.
  bool is_warming_up() const {
    return !is_long_call_ && !may_interrupt() && (had_long_check_ || work_.beside);
  }
  /// Times `beside` by `timed`, which returns its times in ms.
  template <typename Timed>
  auto beside(const Timed& timed) {
    const double begin = clock_.now_s();
    clock_.begin_series(DeviceClock::Series::beside);
    auto times = timed();
    clock_.begin_series(DeviceClock::Series::call);
    spent_s_ += clock_.now_s() - begin;
    return times;
  }
  double spent_s() const { return spent_s_; }
  /// Whether the last check failed because the call's work went on behind its time.
  bool goes_on() const { return goes_on_; }

 private:
  DeviceClock& clock_;
  const TimedWork& work_;
  double spent_s_ = 0;
  bool goes_on_ = false;
  int checked_ = 0;  ///< calls or batches
  bool is_long_call_ = false;
  bool had_long_check_ = false;
};

/// When to stop, over repetitions that begin where it is made.
class Stopping {
 public:
  Stopping(DeviceClock& clock, const Checks& checks, double min_s, const MeasureOptions& options)
      : clock_(clock),
        checks_(checks),
        options_(options),
        rule_(min_s, options.time_limit_s, options.sample_budget_s),
        begin_s_(clock.now_s()),
        checked_s_(checks.spent_s()) {}

  /// For a first sample from before.
  void add_s(double seconds) { begin_s_ -= seconds; }
  /// By the rule, whose time is not that of checks; but time_limit if another repetition like the
  /// last would not end in time.
  Stop decide(const std::vector<double>& samples_ms) {
    elapsed_s_ = clock_.now_s() - begin_s_;
    const Stop stop = rule_.decide(samples_ms, elapsed_s_ - (checks_.spent_s() - checked_s_));
    return stop == Stop::not_yet && is_too_late(samples_ms) ? Stop::time_limit : stop;
  }
  /// At the time of the last decision.
  bool is_too_late(const std::vector<double>& samples_ms) const {
    return elapsed_s_ + samples_ms.back() / 1e3 > options_.time_left_s;
  }

 private:
  DeviceClock& clock_;
  const Checks& checks_;
  const MeasureOptions& options_;
  StoppingRule rule_;
  double begin_s_;
  double checked_s_;
  double elapsed_s_ = 0;
};

/// The repetitions of a burst or replayed graph.
class Burst {
 public:
  Burst(DeviceClock& clock, const TimedWork& work, double cool_down_ms)
      : clock_(clock), work_(work), checks_(clock, work), cool_down_(cool_down_ms) {}

  /// Time of one repetition in ms; nothing if its check failed.
  std::optional<double> repetition() {
    work_.prepare();
    const double ms = time_once(work_.call);
    return checks_.pass(ms) ? std::optional(ms) : std::nullopt;
  }
  /// Time of one call of TimedWork::beside in ms.
  double beside() {
    return checks_.beside([&] { return time_once(work_.beside); });
  }
  const Checks& checks() const { return checks_; }

 private:
  double time_once(const std::function<void()>& call) {
    std::this_thread::sleep_for(cool_down_);
    clock_.flush_caches();  // last: it also wakes the threads after the pause
    return clock_.time_once(call);
  }

  DeviceClock& clock_;
  const TimedWork& work_;
  Checks checks_;
  std::chrono::duration<double, std::milli> cool_down_;
};

/// s that the same call has run before.
double warmed_before(const MeasureOptions& options) {
  return options.warmed_s + options.repeated_ms.value_or(0) / 1e3;
}

/// Whether the repetition before counts as a sample: calls as long as the time limit need no
/// further warm-up, and each repetition saved matters.
bool is_sample(const std::optional<double>& repeated_ms, const MeasureOptions& options) {
  return options.mode == MeasureMode::burst && repeated_ms &&
         *repeated_ms / 1e3 >= options.time_limit_s;
}

/// False if a check failed; so do the functions below.
bool warm_up_burst(DeviceClock& clock, Burst& burst, const MeasureOptions& options) {
  const double warm_from = clock.now_s();
  double warmed = warmed_before(options);
  while (warmed < warm_up_s(options)) {
    if (!burst.repetition()) return false;
    warmed = warmed_before(options) + clock.now_s() - warm_from - burst.checks().spent_s();
  }
  return true;
}

/// Repetitions up to those between which other calls may run. They are the samples only if no time
/// is left for more.
bool check_in_a_row(DeviceClock& clock, Burst& burst, const MeasureOptions& options,
                    Measurement& result) {
  Stopping stopping(clock, burst.checks(), 0.0, options);
  while (result.stop == Stop::not_yet && burst.checks().is_warming_up()) {
    const std::optional<double> ms = burst.repetition();
    if (!ms) return false;
    result.samples_ms.push_back(*ms);
    result.stop = stopping.decide(result.samples_ms);
  }
  if (result.stop == Stop::not_yet) result.samples_ms.clear();
  return true;
}

/// Samples until the stopping rule ends them, or until the first long check asks for repetitions in
/// a row: then nothing is said about stopping.
bool sample_burst(DeviceClock& clock, Burst& burst, const TimedWork& work,
                  const MeasureOptions& options, Measurement& result) {
  Stopping stopping(clock, burst.checks(), 0.0, options);
  if (is_sample(options.repeated_ms, options)) {
    result.samples_ms.push_back(*options.repeated_ms);
    stopping.add_s(*options.repeated_ms / 1e3);
  }
  while (result.stop == Stop::not_yet) {
    const std::optional<double> ms = burst.repetition();
    if (!ms) return false;
    result.samples_ms.push_back(*ms);
    if (burst.checks().is_warming_up()) return true;
    if (work.beside && burst.checks().may_interrupt()) result.beside_ms.push_back(burst.beside());
    result.stop = stopping.decide(result.samples_ms);
  }
  return true;
}

bool measure_burst(DeviceClock& clock, Burst& burst, const TimedWork& work,
                   const MeasureOptions& options, Measurement& result) {
  if (!warm_up_burst(clock, burst, options)) return false;
  const double begin = clock.now_s();
  MeasureOptions now = options;
  while (result.stop == Stop::not_yet) {
    now.time_left_s = options.time_left_s - (clock.now_s() - begin);
    if (!check_in_a_row(clock, burst, now, result)) return false;
    if (result.stop != Stop::not_yet) break;
    clock.repeat(work.call, options.settle_s);
    now.time_left_s = options.time_left_s - (clock.now_s() - begin);
    if (!sample_burst(clock, burst, work, now, result)) return false;
    now.repeated_ms.reset();
  }
  if (work.beside && result.beside_ms.empty()) result.beside_ms.push_back(burst.beside());
  return true;
}

/// Batches of calls back to back, of lengths that a call cannot foresee.
class Sustained {
 public:
  Sustained(DeviceClock& clock, const TimedWork& work, const MeasureOptions& options)
      : clock_(clock),
        work_(work),
        checks_(clock, work),
        options_(options),
        random_(options.seed) {}

  bool measure(Measurement& result) {
    if (!warm_up()) return false;
    const double wanted = kSustainedBatch * 1e3 / std::max(once_ms_, 1e-6);
    std::uniform_int_distribution<int> length(1, static_cast<int>(std::clamp(wanted, 1.0, 1e5)));
    const int least_batches = length.max() > 1 ? kMinBatches : 1;
    clock_.repeat(work_.call, options_.settle_s);
    Stopping stopping(clock_, checks_, kMinSustained, options_);
    for (int batches = 1;; ++batches) {
      work_.prepare();
      const int calls = length(random_);
      const auto samples = clock_.time_back_to_back(work_.call, work_.between, calls);
      if (!checks_.pass(samples.back())) return false;
      result.samples_ms.insert(result.samples_ms.end(), samples.begin(), samples.end());
      if (work_.beside && checks_.may_interrupt()) time_beside(calls, result);
      result.stop = stopping.decide(result.samples_ms);
      const bool enough = batches >= least_batches || stopping.is_too_late(result.samples_ms);
      if (result.stop != Stop::not_yet && enough) break;
    }
    if (work_.beside && result.beside_ms.empty()) time_beside(1, result);
    return true;
  }
  const Checks& checks() const { return checks_; }

 private:
  bool warm_up() {
    double warmed = warmed_before(options_);
    for (int calls = 0; calls < least_alone() || warmed < warm_up_s(options_); ++calls) {
      work_.prepare();
      once_ms_ = clock_.time_once(work_.call);
      if (!checks_.pass(once_ms_)) return false;
      warmed += once_ms_ / 1e3;
    }
    return true;
  }

  /// Long calls are all checked anyway, and none runs between them.
  int least_alone() const { return once_ms_ < kSettled * 1e3 ? kCheckedInARow : 1; }
  void time_beside(int calls, Measurement& result) {
    const auto nothing = [] {};
    const auto times =
        checks_.beside([&] { return clock_.time_back_to_back(work_.beside, nothing, calls); });
    result.beside_ms.insert(result.beside_ms.end(), times.begin(), times.end());
  }

  DeviceClock& clock_;
  const TimedWork& work_;
  Checks checks_;
  const MeasureOptions& options_;
  std::mt19937_64 random_;
  double once_ms_ = 0;
};

}  // namespace

std::vector<std::string> measure_mode_names() {
  return {"burst", "sustained", "graph"};
}

MeasureMode parse_measure_mode(std::string_view text) {
  constexpr std::array kModes = {MeasureMode::burst, MeasureMode::sustained, MeasureMode::graph};
  const std::vector<std::string> names = measure_mode_names();
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) {
    throw_input_error("unknown mode '{}'{}; there are {}", text, suggestion(text, names),
                      fmt::join(names, ", "));
  }
  return kModes.at(static_cast<std::size_t>(found - names.begin()));
}

Measurement measure(DeviceClock& clock, const TimedWork& work, const MeasureOptions& options) {
  Measurement result;
  clock.begin();
  clock.watch(work.results);
  if (options.mode == MeasureMode::sustained) {
    Sustained sustained(clock, work, options);
    result.checked = sustained.measure(result);
    result.goes_on = sustained.checks().goes_on();
  } else {
    Burst burst(clock, work, options.cool_down_ms);
    result.checked = measure_burst(clock, burst, work, options, result);
    result.goes_on = burst.checks().goes_on();
  }
  clock.watch({});
  if (!result.checked) {
    result.samples_ms.clear();
    result.beside_ms.clear();
    return result;
  }
  result.held = clock.held();
  result.median_ms = median(result.samples_ms);
  result.interval = median_interval(result.samples_ms);
  return result;
}

}  // namespace longca
