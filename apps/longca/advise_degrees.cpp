#include "advise_degrees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "bench/run/progress.h"
#include "bench/suite/scheme_axes.h"
#include "core/error.h"

namespace longca {
namespace {

/// Says on a terminal which degree is being weighed: many ranks take minutes to simulate.
class WeighingLine {
 public:
  void show(std::int64_t degree, std::int64_t gpus) const {
    if (!is_shown_) return;
    fmt::print(stderr, "\r\033[Kweighing degree {} of 1 to {}", degree, gpus);
    std::fflush(stderr);
  }
  WeighingLine() = default;
  WeighingLine(const WeighingLine&) = delete;
  WeighingLine& operator=(const WeighingLine&) = delete;
  ~WeighingLine() {
    if (is_shown_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool is_shown_ = Progress::style_of_stderr() == Progress::Style::bar;
};

/// The axes of one degree: those of schemes mean nothing on one GPU. Schemes run as they are best
/// unless the axes say how.
AxisValues axes_of_degree(AxisValues axes, std::int64_t degree) {
  if (degree > 1) {
    axes["ranks"] = {std::to_string(degree)};
    axes.try_emplace("shard", std::vector<std::string>{std::string(kBestShard)});
    return axes;
  }
  for (const char* axis : {"scheme", "shard", "factor", "transport"}) axes.erase(axis);
  return axes;
}

advise::Advice answer_one(const AxisValues& axes, const advise::AdviceOptions& options,
                          Advisors& advisors) {
  std::vector<advise::Advice> answers = answer_problems(axes, options, advisors);
  if (answers.size() != 1) {
    throw_input_error("--gpus weighs degrees for one problem, and {} are asked for: give one value",
                      answers.size());
  }
  return std::move(answers.front());
}

/// A replica of one GPU: what records tell or, where they tell nothing, its simulation, in which
/// one rank of any scheme runs the kernel alone.
advise::Advice answer_one_gpu(const AxisValues& axes, const advise::AdviceOptions& options,
                              Advisors& advisors) {
  advise::Advice known = answer_one(axes_of_degree(axes, 1), options, advisors);
  if (!known.choices.empty()) return known;
  AxisValues one_rank = axes_of_degree(axes, 1);
  one_rank["ranks"] = {"1"};
  one_rank["scheme"] = {scheme_names().front()};
  one_rank["shard"] = {std::string(kBestShard)};
  advise::Advice simulated = answer_one(one_rank, options, advisors);
  if (simulated.choices.empty()) return known;
  known.choices = std::move(simulated.choices);
  known.unknown.clear();
  for (advise::Choice& choice : known.choices) {
    choice.c.scheme.reset();
    choice.c.ranks.reset();
    choice.c.shard.reset();
    choice.c.factor.reset();
    choice.c.transport.reset();
  }
  return known;
}

/// What the degree offers; where its tensors do not fit a GPU, that alone.
advise::Advice advice_of_degree(const advise::WeighedDegrees& weighed, std::int64_t degree,
                                std::span<const AxisValues> sequences,
                                const advise::AdviceOptions& options, Advisors& advisors) {
  Case longest = weighed.problem;
  longest.tokens = weighed.longest;
  if (const auto memory = advisors.evidence.memory_bytes()) {
    std::string too_large = advise::why_too_large(longest, degree, *memory);
    if (!too_large.empty()) {
      return {.problem = weighed.problem, .excluded = {{"every kernel", std::move(too_large)}}};
    }
  }
  std::vector<advise::Advice> answers;
  for (const AxisValues& axes : sequences) {
    answers.push_back(degree == 1 ? answer_one_gpu(axes, options, advisors)
                                  : answer_one(axes_of_degree(axes, degree), options, advisors));
  }
  return advise::step_advice(answers, weighed.training, weighed.sequences, degree);
}

}  // namespace

advise::WeighedDegrees weigh_training(advise::Training training, AxisValues given,
                                      const std::optional<AskedDocuments>& documents,
                                      const advise::AdviceOptions& options, Advisors& advisors) {
  for (const char* axis : {"ranks", "tokens_per_rank"}) {
    if (given.contains(axis)) {
      throw_input_error("--gpus weighs numbers of ranks for whole sequences: leave -a {}= out",
                        axis);
    }
  }
  given.try_emplace("mode", std::vector<std::string>{"sustained"});
  advisors.simulator.require_ranks(training.gpus);
  const std::vector<AxisValues> sequences =
      documents ? axes_of_documents(*documents, given) : std::vector{given};
  advise::WeighedDegrees weighed{.training = training,
                                 .memory_bytes = advisors.evidence.memory_bytes()};
  std::vector<std::int64_t> lengths;
  for (const AxisValues& axes : sequences) {
    const advise::Advice one = answer_one(axes_of_degree(axes, 1), options, advisors);
    lengths.push_back(one.problem.tokens);
    weighed.problem = one.problem;
  }
  const std::int64_t tokens = std::reduce(lengths.begin(), lengths.end(), std::int64_t{0});
  weighed.problem.tokens = tokens / std::ssize(lengths);
  weighed.sampled = lengths.size();
  weighed.longest = std::ranges::max(lengths);
  weighed.sequences = advise::sequences_of_step(training, lengths);
  if (training.tokens_per_step == 0) {
    weighed.training.tokens_per_step = weighed.problem.tokens * weighed.sequences;
  }
  const WeighingLine line;
  for (const std::int64_t degree : advise::degrees_of(training.gpus)) {
    line.show(degree, training.gpus);
    weighed.by_degree.push_back(
        {degree, advice_of_degree(weighed, degree, sequences, options, advisors)});
  }
  advise::rank_degrees(weighed);
  return weighed;
}

}  // namespace longca
