#include "report/ranks_absent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace longca {
namespace {

/// Schemes that lack the same of one variant.
struct Gap {
  std::string variant;
  std::string cells;  ///< "4 X, 8 X"
  std::vector<std::string> schemes;
};

std::string absent_cells(const RanksPanel& panel, const RanksSeries& series) {
  std::string text;
  for (const Record* cell : series.cells) {
    if (cell->status.ok() && metric_of(cell, "tflops")) continue;
    const std::string ranks =
        panel.ranks.size() > 1 ? fmt::format("{} ", cell->c.ranks.value_or(1)) : "";
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", ranks, status_mark(cell->status.code));
  }
  return text;
}

std::vector<Gap> find_gaps(const RanksPanel& panel) {
  std::vector<Gap> gaps;
  for (const RanksSeries& series : panel.series) {
    std::string cells = absent_cells(panel, series);
    if (cells.empty()) continue;
    auto gap = std::find_if(gaps.begin(), gaps.end(), [&](const Gap& known) {
      return known.variant == series.variant && known.cells == cells;
    });
    if (gap == gaps.end()) gap = gaps.insert(gap, {series.variant, std::move(cells), {}});
    gap->schemes.push_back(*series.cells.front()->c.scheme);
  }
  return gaps;
}

std::string schemes_text(const RanksPanel& panel, const Gap& gap) {
  const auto of_variant =
      std::count_if(panel.series.begin(), panel.series.end(),
                    [&](const RanksSeries& series) { return series.variant == gap.variant; });
  const auto absent = std::ssize(gap.schemes);
  if (absent > 2 && absent == of_variant) return fmt::format("all {} schemes", absent);
  return fmt::format("{}", fmt::join(gap.schemes, ", "));
}

}  // namespace

std::string absent_text(const RanksPanel& panel) {
  std::string text;
  for (const Gap& gap : find_gaps(panel)) {
    const std::string schemes = schemes_text(panel, gap);
    text += text.empty() ? "no number: " : "; ";
    text += gap.variant.empty() ? fmt::format("{} {}", schemes, gap.cells)
                                : fmt::format("{} {} ({})", gap.variant, gap.cells, schemes);
  }
  return text;
}

}  // namespace longca
