#include "bench/measure/measurement.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/error.h"

namespace longca {
namespace {

/// s until page faults, the ramp of the clock and the start of threads are over.
constexpr double kWarmUp = 0.1;
constexpr double kWarmUpShare = 0.2;      // at most this share of the time limit
constexpr double kMinSustained = 1.0;     // s
constexpr double kSustainedBatch = 0.05;  // s between two checks of the stopping rule

double warm_up_s(const MeasureOptions& options) {
  return std::min(kWarmUp, kWarmUpShare * options.time_limit_s);
}

/// The stopping rule, but time_limit if another repetition like the last would not end in time.
Stop decide(StoppingRule& rule, const std::vector<double>& samples_ms, double elapsed_s,
            const MeasureOptions& options) {
  const Stop stop = rule.decide(samples_ms, elapsed_s);
  const bool too_late = elapsed_s + samples_ms.back() / 1e3 > options.time_left_s;
  return stop == Stop::not_yet && too_late ? Stop::time_limit : stop;
}

class Burst {
 public:
  Burst(DeviceClock& clock, const std::function<void()>& call, const std::function<void()>& prepare,
        double cool_down_ms)
      : clock_(clock), call_(call), prepare_(prepare), cool_down_(cool_down_ms) {}

  double repetition() {
    prepare_();
    std::this_thread::sleep_for(cool_down_);
    clock_.flush_caches();  // last: it also wakes the threads after the pause
    return clock_.time_once(call_);
  }

 private:
  DeviceClock& clock_;
  const std::function<void()>& call_;
  const std::function<void()>& prepare_;
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

void measure_burst(DeviceClock& clock, Burst burst, const MeasureOptions& options,
                   Measurement& result) {
  const double warm_from = clock.now_s();
  for (double warmed = warmed_before(options); warmed < warm_up_s(options);) {
    burst.repetition();
    warmed = warmed_before(options) + clock.now_s() - warm_from;
  }
  StoppingRule rule(0.0, options.time_limit_s);
  double begin = clock.now_s();
  if (is_sample(options.repeated_ms, options)) {
    result.samples_ms.push_back(*options.repeated_ms);
    begin -= *options.repeated_ms / 1e3;
  }
  while (result.stop == Stop::not_yet) {
    result.samples_ms.push_back(burst.repetition());
    result.stop = decide(rule, result.samples_ms, clock.now_s() - begin, options);
  }
}

void measure_sustained(DeviceClock& clock, const std::function<void()>& call,
                       const MeasureOptions& options, Measurement& result) {
  double once_ms = clock.time_once(call);
  for (double warmed = warmed_before(options) + once_ms / 1e3; warmed < warm_up_s(options);
       warmed += once_ms / 1e3) {
    once_ms = clock.time_once(call);
  }
  const double wanted = kSustainedBatch * 1e3 / std::max(once_ms, 1e-6);
  const int batch = static_cast<int>(std::clamp(wanted, 1.0, 1e5));
  StoppingRule rule(kMinSustained, options.time_limit_s);
  const double begin = clock.now_s();
  while (result.stop == Stop::not_yet) {
    const std::vector<double> samples = clock.time_back_to_back(call, batch);
    result.samples_ms.insert(result.samples_ms.end(), samples.begin(), samples.end());
    result.stop = decide(rule, result.samples_ms, clock.now_s() - begin, options);
  }
}

}  // namespace

MeasureMode parse_measure_mode(std::string_view text) {
  if (text == "burst") return MeasureMode::burst;
  if (text == "sustained") return MeasureMode::sustained;
  if (text == "graph") return MeasureMode::graph;
  throw_input_error("unknown mode '{}' (known: burst, sustained, graph)", text);
}

Measurement measure(DeviceClock& clock, const std::function<void()>& call,
                    const std::function<void()>& prepare, const MeasureOptions& options) {
  Measurement result;
  clock.begin();
  if (options.mode == MeasureMode::sustained) {
    measure_sustained(clock, call, options, result);
  } else {
    measure_burst(clock, Burst(clock, call, prepare, options.cool_down_ms), options, result);
  }
  result.held = clock.held();
  result.median_ms = median(result.samples_ms);
  result.interval = median_interval(result.samples_ms);
  return result;
}

}  // namespace longca
