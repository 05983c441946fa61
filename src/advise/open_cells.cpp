#include "advise/open_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "report/format.h"

namespace longca::advise {
namespace {

constexpr double kNothingKnown = std::numeric_limits<double>::infinity();

double reach_below(const Expected& first, const Expected& rival) {
  return std::max(0.0, first.high - rival.low) / first.value;
}

/// How far the rival of the first choice that may come furthest may come.
double reach_of_rivals(std::span<const Choice> choices, Objective objective) {
  double reach = 0;
  for (const Choice& rival : choices.subspan(1)) {
    reach = std::max(
        reach, reach_below(figure_of(choices.front(), objective), figure_of(rival, objective)));
  }
  return reach;
}

void add_open_cells(const Advice& advice, Objective objective, std::vector<OpenCell>& cells) {
  double slowest_ms = 0;
  for (const Choice& choice : advice.choices) {
    slowest_ms = std::max(slowest_ms, choice.time_ms.value);
    if (choice.basis != Basis::interpolated) continue;
    const bool is_first = &choice == &advice.choices.front();
    const double matters = is_first ? reach_of_rivals(advice.choices, objective)
                                    : reach_below(figure_of(advice.choices.front(), objective),
                                                  figure_of(choice, objective));
    if (is_first || matters > 0) cells.push_back({choice.c, matters, choice.time_ms.value});
  }
  for (const Refusal& unknown : advice.unknown) {
    Case c = advice.problem;
    c.kernel = unknown.kernel;
    cells.push_back({std::move(c), kNothingKnown, slowest_ms});
  }
}

}  // namespace

std::vector<OpenCell> open_cells(std::span<const Advice> answers, Objective objective) {
  std::vector<OpenCell> cells;
  for (const Advice& advice : answers) add_open_cells(advice, objective, cells);
  std::ranges::stable_sort(cells, std::greater<>(), &OpenCell::matters);
  return cells;
}

std::vector<ChangedChoice> changed_choices(std::span<const Advice> before,
                                           std::span<const Advice> after) {
  const auto first_of = [](const Advice& advice) {
    return advice.choices.empty() ? std::nullopt : std::optional(advice.choices.front());
  };
  std::vector<ChangedChoice> changes;
  for (std::size_t i = 0; i < before.size(); ++i) {
    changes.push_back({before[i].problem, first_of(before[i]), first_of(after[i])});
  }
  return changes;
}

std::string describe(const ChangedChoice& change) {
  const auto& [problem, before, after] = change;
  if (!after) return "still nothing is known";
  const std::string now = fmt::format("{} ms", format_figure(after->time_ms.value));
  if (!before)
    return fmt::format("{} is first: {}; nothing was known", name_of_choice(*after), now);
  if (after->basis != Basis::measured) {
    return fmt::format("{} is first: {}, not measured", name_of_choice(*after), now);
  }
  if (name_of_choice(*before) == name_of_choice(*after)) {
    return fmt::format("{} stays first: {}, expected {} to {}", name_of_choice(*after), now,
                       format_figure(before->time_ms.low), format_figure(before->time_ms.high));
  }
  return fmt::format("{} is first instead of {}: {}, and {} was expected of {}",
                     name_of_choice(*after), name_of_choice(*before), now,
                     format_figure(before->time_ms.value), name_of_choice(*before));
}

}  // namespace longca::advise
