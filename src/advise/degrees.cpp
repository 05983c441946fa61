#include "advise/degrees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "advise/documents.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/rounding.h"
#include "report/format.h"

namespace longca::advise {
namespace {

/// Steps whose mean is taken where sequences differ, and sequences drawn for all of them.
constexpr std::int64_t kDrawnSteps = 64;
constexpr std::int64_t kDrawnSequences = std::int64_t{1} << 20;

Expected slowest_of(const std::vector<Expected>& replicas) {
  Expected slowest;
  for (const Expected& replica : replicas) {
    slowest = {std::max(slowest.value, replica.value), std::max(slowest.low, replica.low),
               std::max(slowest.high, replica.high)};
  }
  return slowest;
}

Expected scaled(const Expected& time, double factor) {
  return {time.value * factor, time.low * factor, time.high * factor};
}

Expected added(const Expected& a, const Expected& b) {
  return {a.value + b.value, a.low + b.low, a.high + b.high};
}

/// q, k, v, o and LSE of one layer on each GPU.
double call_bytes(const Case& c, std::int64_t degree) {
  const double rows = std::ceil(static_cast<double>(c.tokens) / static_cast<double>(degree));
  const double dims = c.head_dim + c.problem().value_dim();
  const double of_heads = (c.heads_q + c.heads_k) * dims;  // q and o, k and v
  return rows * (of_heads * static_cast<double>(size_of(c.dtype)) + 4.0 * c.heads_q);
}

}  // namespace

std::vector<std::int64_t> degrees_of(std::int64_t gpus) {
  std::vector<std::int64_t> degrees;
  for (std::int64_t degree = 1; gpus % degree == 0; degree *= 2) degrees.push_back(degree);
  if (degrees.back() != gpus) degrees.push_back(gpus);
  return degrees;
}

std::int64_t sequences_of_step(const Training& training, std::span<const std::int64_t> lengths) {
  const auto [shortest, longest] = std::ranges::minmax(lengths);
  const double mean =
      static_cast<double>(std::reduce(lengths.begin(), lengths.end(), std::int64_t{0})) /
      static_cast<double>(lengths.size());
  if (training.tokens_per_step == 0) return training.gpus;
  const double exact = static_cast<double>(training.tokens_per_step) / mean;
  const auto count = std::max<std::int64_t>(1, std::llround(exact));
  const bool fits = shortest == longest ? training.tokens_per_step % longest == 0 : exact >= 0.5;
  if (fits) return count;
  throw_input_error(
      "--tokens-per-step {}: a step has whole sequences, and one has {} tokens; the nearest is {}",
      training.tokens_per_step, std::llround(mean),
      std::llround(static_cast<double>(count) * mean));
}

Expected step_time(std::span<const Expected> times, std::int64_t count, std::int64_t replicas) {
  if (times.size() == 1) {
    const std::int64_t rounds = ceil_div(count, replicas);
    return scaled(times.front(), static_cast<double>(rounds));
  }
  std::mt19937_64 random(1);
  const std::int64_t steps = std::clamp<std::int64_t>(kDrawnSequences / count, 1, kDrawnSteps);
  Expected sum;
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<Expected> sums(static_cast<std::size_t>(std::min(replicas, count)));
    for (std::int64_t i = 0; i < count; ++i) {
      Expected& replica = sums[static_cast<std::size_t>(i % replicas)];
      replica = added(replica, times[random() % times.size()]);
    }
    sum = added(sum, slowest_of(sums));
  }
  return scaled(sum, 1 / static_cast<double>(steps));
}

std::string why_too_large(const Case& problem, std::int64_t degree, double memory_bytes) {
  const bool has_gradients = problem.pass != Pass::forward;
  const double bytes = call_bytes(problem, degree) * (has_gradients ? 2 : 1);
  if (bytes <= memory_bytes) return "";
  return fmt::format("one layer's q, k, v, o{} take {} of a GPU, which has {}",
                     has_gradients ? " and their gradients" : "", format_bytes(bytes),
                     format_bytes(memory_bytes));
}

Advice step_advice(std::span<const Advice> answers, const Training& training, std::int64_t count,
                   std::int64_t degree) {
  const auto of_step = [&](std::span<const Expected> times) {
    return scaled(step_time(times, count, training.gpus / degree),
                  static_cast<double>(training.layers));
  };
  Advice advice = combined_advice(answers, Objective::time, of_step);
  if (answers.size() == 1) advice.find_out = answers.front().find_out;
  return advice;
}

void rank_degrees(WeighedDegrees& weighed) {
  weighed.choices.clear();
  std::vector<Choice> too_large;
  for (const DegreeAdvice& one : weighed.by_degree) {
    std::vector<Choice>& list = fits(weighed, one.degree) ? weighed.choices : too_large;
    list.insert(list.end(), one.advice.choices.begin(), one.advice.choices.end());
  }
  rank_choices(weighed.choices, Objective::time);
  rank_choices(too_large, Objective::time);
  if (!weighed.choices.empty()) {
    for (Choice& choice : too_large) choice.tied = false;
  }
  weighed.choices.insert(weighed.choices.end(), too_large.begin(), too_large.end());
}

double kept_bytes(const WeighedDegrees& weighed, std::int64_t degree) {
  Case longest = weighed.problem;
  longest.tokens = weighed.longest;
  const double one = call_bytes(longest, degree);
  const bool is_forward = longest.pass == Pass::forward;
  return is_forward ? one : one * static_cast<double>(weighed.training.layers);
}

bool fits(const WeighedDegrees& weighed, std::int64_t degree) {
  return !weighed.memory_bytes || kept_bytes(weighed, degree) <= *weighed.memory_bytes;
}

const Choice* best_of(const WeighedDegrees& weighed, std::int64_t degree) {
  const auto found = std::ranges::find(weighed.choices, degree, degree_of);
  return found == weighed.choices.end() ? nullptr : &*found;
}

}  // namespace longca::advise
