#include "simulate/kernel_times.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "attention/kernels/slice/planner/call_estimate.h"
#include "simulate/relative_fit.h"

namespace longca::simulate {
namespace {

constexpr int kClockSteps = 8;     // until clock and activity agree to 1e-4
constexpr std::size_t kTerms = 3;  // cells, rows, calls
using Terms = std::array<double, kTerms>;
constexpr double kMinWeight = 1e-6;  ///< of a call that takes quite another time
constexpr double kMinWork = 0.1;     ///< of a call's time is spent on cells

double flops_of_cell(const TimedCall& call, cost::Pass pass) {
  const cost::HeadShape shape{
      .heads_q = call.heads, .heads_k = call.heads, .head_dim = call.head_dim};
  return cost::flops_per_cell(shape, pass);
}

/// What each of the three figures contributes to a call, relative to the call's time.
Terms terms_of(const TimedCall& call, cost::Pass pass) {
  const double flops = flops_of_cell(call, pass);
  return {flops * call.area / call.seconds, flops * call.rows / call.seconds, 1 / call.seconds};
}

std::vector<std::int64_t> key_of(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) {
  std::vector<std::int64_t> key = {mask.q_tokens(), mask.k_tokens(), shape.heads_q,
                                   shape.heads_k,   shape.head_dim,  static_cast<int>(pass)};
  for (const MaskSlice& s : mask.slices()) {
    key.insert(key.end(), {s.q_begin, s.q_end, s.k_begin, s.k_end, static_cast<int>(s.type)});
  }
  return key;
}

}  // namespace

double CallRate::seconds(double area, double rows, int heads, int head_dim, cost::Pass pass) const {
  if (area <= 0) return 0;
  const cost::HeadShape shape{.heads_q = heads, .heads_k = heads, .head_dim = head_dim};
  return cost::CallCost{cost::flops_per_cell(shape, pass) / flops_per_second, keys_per_row,
                        seconds_per_call}
      .seconds(area + keys_per_row * rows);
}

double KernelTimes::sustained(const CallTime& call, cost::Pass pass) const {
  const double fixed = call.seconds - hidden_seconds(pass) - call.cycle_seconds;
  double factor = 1;
  for (int i = 0; i < kClockSteps; ++i) {
    const double seconds = fixed + factor * call.cycle_seconds;
    factor = sustained_slowdown(factor * call.busy_seconds, fixed, seconds, pass);
  }
  return fixed + factor * call.cycle_seconds;
}

CallTime RateTimes::call(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const {
  const double seconds = (pass == cost::Pass::forward ? forward_ : backward_)
                             .seconds(mask.mean_area(), static_cast<double>(mask.q_tokens()),
                                      shape.heads_q, shape.head_dim, pass);
  return {seconds, seconds, seconds};
}

SliceTimes::Estimate SliceTimes::estimate(const Mask& mask, const cost::HeadShape& shape,
                                          cost::Pass pass) const {
  if (mask.mean_area() <= 0) return {};
  const auto make = [&]() -> Estimate {
    const double factor = factors_[static_cast<std::size_t>(pass)];
    const slice::CallEstimate call = pass == cost::Pass::forward
                                         ? slice::estimate_forward(mask, shape, platform_)
                                         : slice::estimate_backward(mask, shape, platform_);
    return {{factor * call.seconds, factor * call.cycle_seconds, factor * call.busy_seconds},
            call.sum_bytes};
  };
  if (mask.blocks() != nullptr) return make();
  const CallKey key = key_of(mask, shape, pass);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  const Estimate made = make();
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, made).first->second;
}

CallTime SliceTimes::call(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const {
  return estimate(mask, shape, pass).time;
}

double SliceTimes::sum_bytes(const Mask& mask, const cost::HeadShape& shape) const {
  return estimate(mask, shape, cost::Pass::backward).sum_bytes;
}

const cost::PowerLimit& SliceTimes::power(cost::Pass pass) const {
  const cost::SliceCall& call = platform_.call;
  return pass == cost::Pass::forward ? call.forward.power : call.backward.power;
}

double SliceTimes::slowdown(double run_seconds, cost::Pass pass) const {
  return power(pass).slowdown(run_seconds);
}

double SliceTimes::sustained_slowdown(double busy_seconds, double memory_seconds, double seconds,
                                      cost::Pass pass) const {
  return power(pass).slowdown_at(busy_seconds, memory_seconds, seconds);
}

double SliceTimes::hidden_seconds(cost::Pass pass) const {
  if (pass == cost::Pass::backward) return 0;
  return platform_.call.forward.hidden_seconds * factors_[static_cast<std::size_t>(pass)];
}

std::size_t SliceTimes::KeyHash::operator()(const CallKey& key) const {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
  std::uint64_t hash = 0;
  for (const std::int64_t value : key) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * kFactor;
    hash ^= hash >> 32;
  }
  return hash;
}

CallRate fit_rate(std::span<const TimedCall> calls, cost::Pass pass) {
  std::vector<Terms> terms;
  for (const TimedCall& call : calls) terms.push_back(terms_of(call, pass));
  const Terms best = fit_relative(terms);
  if (best[0] == 0) return {};
  return {1 / best[0], best[1] / best[0], best[2]};
}

CallRate scaled_to(CallRate rate, std::span<const TimedCall> calls, cost::Pass pass,
                   double seconds) {
  if (calls.empty() || rate.flops_per_second == 0) return rate;
  double sum = 0;
  double weights = 0;
  for (const TimedCall& call : calls) {
    const double distance = seconds > 0 ? std::log2(call.seconds / seconds) : 0;
    const double weight = std::max(std::exp(-0.5 * distance * distance), kMinWeight);
    const double fixed = rate.seconds_per_call;
    const double work = rate.seconds(call.area, call.rows, call.heads, call.head_dim, pass) - fixed;
    sum += weight * std::log(std::max(call.seconds - fixed, kMinWork * call.seconds) / work);
    weights += weight;
  }
  rate.flops_per_second /= std::exp(sum / weights);
  return rate;
}

}  // namespace longca::simulate
