#include "report/data/summary.h"

#include <cmath>
#include <map>
#include <set>

namespace longca {
namespace {

std::string name_of(const ViewRow& row, const View& view) {
  if (!view.over_ranks) return row.kernel;
  const std::string scheme = row.c().scheme.value_or("");
  return view.kernels.size() > 1 ? scheme + ", " + row.kernel : scheme;
}

/// The fastest row of each name.
std::map<std::string, const RankedRow*> fastest_by_name(const Ranking& ranking, const View& view) {
  std::map<std::string, const RankedRow*> fastest;
  for (const RankedRow& row : ranking.rows) fastest.try_emplace(name_of(*row.row, view), &row);
  return fastest;
}

}  // namespace

Summary summarize(const View& view) {
  Summary summary;
  std::map<std::string, std::array<double, 3>> logarithms;
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      for (const ViewRow& row : group.rows) {
        const std::string name = name_of(row, view);
        find_or_add(
            summary.rows, [&](const SummaryRow& known) { return known.name == name; },
            SummaryRow{name, {}});
      }
      for (const Work work : kWorks) {
        const Ranking ranking = rank(group, work);
        const auto fastest = fastest_by_name(ranking, view);
        if (fastest.size() < 2) continue;
        const auto index = static_cast<std::size_t>(work);
        ++summary.problems[index];
        for (SummaryRow& row : summary.rows) {
          const auto own = fastest.find(row.name);
          if (own == fastest.end()) continue;
          Standing& standing = row.standings[index];
          ++standing.problems;
          standing.first += own->second->is_first ? 1 : 0;
          logarithms[row.name][index] +=
              std::log(ranking.rows.front().time_ms / own->second->time_ms);
        }
      }
    }
  }
  for (SummaryRow& row : summary.rows) {
    for (std::size_t i = 0; i < row.standings.size(); ++i) {
      Standing& standing = row.standings[i];
      if (standing.problems == 0) continue;
      standing.of_fastest = std::exp(logarithms[row.name][i] / standing.problems);
    }
  }
  return summary;
}

}  // namespace longca
