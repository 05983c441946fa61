#include "advise/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "bench/suite/axes.h"
#include "report/data/ranking.h"

namespace longca::advise {
namespace {

std::string value_of(const Case& c, LeftOut left_out) {
  switch (left_out) {
    case LeftOut::mask:
      return c.mask;
    case LeftOut::length:
      return std::to_string(c.tokens);
    case LeftOut::heads:
      return fmt::format("{}:{}", c.heads_q, c.heads_k);
  }
  return "";
}

Case for_kernel(Case c, const std::string& kernel, Pass pass) {
  c.kernel = kernel;
  c.pass = pass;
  return canonical(std::move(c));
}

std::optional<double> measured_ms(const Evidence& evidence, const Case& problem,
                                  const std::string& kernel) {
  const auto of = [&](Pass pass) -> std::optional<double> {
    const EvidenceCell* cell = evidence.find(for_kernel(problem, kernel, pass));
    return cell == nullptr ? std::nullopt : cell->time_ms;
  };
  if (problem.pass != Pass::step) return of(problem.pass);
  if (const auto step = of(Pass::step)) return step;
  const auto forward = of(Pass::forward);
  const auto backward = of(Pass::backward);
  if (!forward || !backward) return std::nullopt;
  return *forward + *backward;
}

/// A problem with a pass, and the kernels that have a record of it.
struct AskedProblem {
  Case c;
  std::set<std::string> kernels;
};

/// The problems of the cells on one device with that value; of both passes also their step.
std::vector<AskedProblem> problems_with(const Evidence& evidence, LeftOut left_out,
                                        const std::string& value) {
  std::map<std::string, AskedProblem> problems;
  const auto add = [&](const Case& c, Pass pass) {
    const Case problem = for_kernel(c, "", pass);
    AskedProblem& asked =
        problems
            .try_emplace(problem.problem_key() + "\n" + problem.key(), AskedProblem{problem, {}})
            .first->second;
    asked.kernels.insert(c.kernel);
  };
  for (const EvidenceCell& cell : evidence.cells()) {
    if (cell.c.scheme || value_of(cell.c, left_out) != value) continue;
    add(cell.c, cell.c.pass);
    if (cell.c.pass == Pass::backward) add(cell.c, Pass::step);
  }
  std::vector<AskedProblem> asked;
  for (auto& [key, problem] : problems) asked.push_back(std::move(problem));
  return asked;
}

void judge_choice(const Evidence& evidence, const AskedProblem& asked, const Advice& advice,
                  HeldOut& held_out) {
  std::optional<double> fastest;
  int timed = 0;
  for (const std::string& kernel : asked.kernels) {
    const auto time = measured_ms(evidence, asked.c, kernel);
    if (!time) continue;
    fastest = std::min(fastest.value_or(*time), *time);
    ++timed;
  }
  if (timed < 2) return;  // there was nothing to choose
  HeldOutChoice choice{.problem = asked.c};
  const auto is_right = [&](const Choice& made) {
    const auto time = measured_ms(evidence, asked.c, made.c.kernel);
    return time && *time / *fastest - 1 <= Ranking::kTie;
  };
  choice.right_or_tied = std::ranges::any_of(advice.choices, [&](const Choice& made) {
    return (made.tied || &made == &advice.choices.front()) && is_right(made);
  });
  if (!advice.choices.empty()) {
    choice.chosen = advice.choices.front().c.kernel;
    if (const auto time = measured_ms(evidence, asked.c, choice.chosen)) {
      choice.could_run = true;
      choice.regret = *time / *fastest - 1;
    }
  }
  held_out.choices.push_back(std::move(choice));
}

void judge(const Evidence& evidence, const AskedProblem& asked, const Advice& advice,
           HeldOut& held_out) {
  if (asked.c.pass != Pass::step) {
    for (const Choice& choice : advice.choices) {
      const auto measured = measured_ms(evidence, asked.c, choice.c.kernel);
      if (!measured) continue;
      HeldOutCell cell{choice.c, *measured, choice.time_ms};
      const EvidenceCell* known = evidence.find(choice.c);
      if (known != nullptr && known->peak_bytes && choice.peak_bytes) {
        cell.memory_error = std::abs(choice.peak_bytes->value / *known->peak_bytes - 1);
      }
      held_out.cells.push_back(std::move(cell));
    }
  }
  judge_choice(evidence, asked, advice, held_out);
}

/// The smallest value that is not below a share of all; 0 without values.
double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

double mean_of_values(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

template <typename NameOfCell, typename NameOfChoice>
std::vector<NamedScore> scores_by(const HeldOut& held_out, const NameOfCell& name_of_cell,
                                  const NameOfChoice& name_of_choice) {
  struct Group {
    std::vector<HeldOutCell> cells;
    std::vector<HeldOutChoice> choices;
  };
  std::vector<std::pair<std::string, Group>> groups;
  const auto group = [&](const std::string& name) -> Group& {
    const auto found = std::ranges::find(groups, name, &std::pair<std::string, Group>::first);
    return found != groups.end() ? found->second : groups.emplace_back(name, Group{}).second;
  };
  for (const HeldOutCell& cell : held_out.cells) group(name_of_cell(cell)).cells.push_back(cell);
  for (const HeldOutChoice& choice : held_out.choices) {
    if (!choice.chosen.empty()) group(name_of_choice(choice)).choices.push_back(choice);
  }
  std::vector<NamedScore> scores;
  for (const auto& [name, own] : groups) scores.push_back({name, score_of(own.cells, own.choices)});
  return scores;
}

}  // namespace

std::string_view to_string(LeftOut left_out) {
  switch (left_out) {
    case LeftOut::mask:
      return "mask";
    case LeftOut::length:
      return "length";
    case LeftOut::heads:
      return "heads";
  }
  return "";
}

HeldOut leave_out(const Evidence& evidence, MaskFacts& masks, LeftOut left_out) {
  HeldOut held_out{.left_out = left_out};
  std::vector<std::string> values;
  for (const EvidenceCell& cell : evidence.cells()) {
    const std::string value = value_of(cell.c, left_out);
    if (!cell.c.scheme && std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  if (values.size() < 2) return held_out;
  for (const std::string& value : values) {
    const Evidence rest = evidence.without(
        [&](const EvidenceCell& cell) { return value_of(cell.c, left_out) == value; });
    Advisor advisor(rest, masks);
    for (const AskedProblem& asked : problems_with(evidence, left_out, value)) {
      judge(evidence, asked, advisor.advise(asked.c, {.kernels = asked.kernels}), held_out);
    }
  }
  return held_out;
}

Score score_of(std::span<const HeldOutCell> cells, std::span<const HeldOutChoice> choices) {
  Score score{.cells = cells.size(), .choices = choices.size()};
  std::vector<double> errors, memory_errors, covered, regrets, right, right_or_tied;
  for (const HeldOutCell& cell : cells) {
    const Expected& expected = cell.expected_ms;
    errors.push_back(std::abs(expected.value / cell.measured_ms - 1));
    const bool holds = cell.measured_ms >= expected.low && cell.measured_ms <= expected.high;
    covered.push_back(holds ? 1 : 0);
    if (cell.memory_error) memory_errors.push_back(*cell.memory_error);
  }
  for (const HeldOutChoice& choice : choices) {
    if (choice.chosen.empty()) {
      ++score.no_answer;
      continue;
    }
    if (!choice.could_run) ++score.could_not_run;
    if (choice.could_run) regrets.push_back(choice.regret);
    right.push_back(choice.could_run && choice.regret <= Ranking::kTie ? 1 : 0);
    right_or_tied.push_back(choice.right_or_tied ? 1 : 0);
  }
  score.median_error = quantile(errors, 0.5);
  score.p90_error = quantile(errors, 0.9);
  score.coverage = mean_of_values(covered);
  score.mean_regret = mean_of_values(regrets);
  score.p95_regret = quantile(regrets, 0.95);
  score.right = mean_of_values(right);
  score.right_or_tied = mean_of_values(right_or_tied);
  score.peaks = memory_errors.size();
  score.p90_memory_error = quantile(memory_errors, 0.9);
  return score;
}

std::vector<NamedScore> scores_by_kernel(const HeldOut& held_out) {
  return scores_by(
      held_out, [](const HeldOutCell& cell) { return cell.c.kernel; },
      [](const HeldOutChoice& choice) { return choice.chosen; });
}

std::vector<NamedScore> scores_by_mask(const HeldOut& held_out) {
  return scores_by(
      held_out, [](const HeldOutCell& cell) { return cell.c.mask; },
      [](const HeldOutChoice& choice) { return choice.problem.mask; });
}

}  // namespace longca::advise
