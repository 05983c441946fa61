#include "report/data/summary.h"

#include <cmath>
#include <map>

namespace longca {
namespace {

std::string name_of(const Case& c, const View& view) {
  if (!c.scheme) return c.kernel;
  return view.kernels.size() > 1 ? *c.scheme + ", " + c.kernel : *c.scheme;
}

/// The fastest row of each name.
std::map<std::string, const RankedRow*> fastest_by_name(const Ranking& ranking, const View& view) {
  std::map<std::string, const RankedRow*> fastest;
  for (const RankedRow& row : ranking.rows) fastest.try_emplace(name_of(row.row->c(), view), &row);
  return fastest;
}

/// Adds a problem; Standing::of_fastest is the sum of logarithms until all are added.
void add_ranking(const Ranking& ranking, RankedWork work, const View& view, Summary& summary) {
  const auto fastest = fastest_by_name(ranking, view);
  if (fastest.size() < 2) return;
  if (ranking.rows.front().time_ms <= 0) return;  // a share of no time is none
  const auto index = static_cast<std::size_t>(work);
  ++summary.problems[index];
  for (SummaryRow& row : summary.rows) {
    const auto own = fastest.find(row.name);
    if (own == fastest.end()) continue;
    Standing& standing = row.standings[index];
    ++standing.problems;
    standing.first += own->second->is_first ? 1 : 0;
    standing.of_fastest += std::log(ranking.rows.front().time_ms / own->second->time_ms);
  }
}

}  // namespace

Summary summarize(const View& view) {
  Summary summary;
  for (const Record* record : view.records()) {
    const std::string name = name_of(record->c, view);
    find_or_add(
        summary.rows, [&](const SummaryRow& known) { return known.name == name; },
        SummaryRow{name, {}});
  }
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      for (const RankedWork work : kWorks) add_ranking(rank(group, work), work, view, summary);
    }
  }
  for (SummaryRow& row : summary.rows) {
    for (Standing& standing : row.standings) {
      if (standing.problems > 0) {
        standing.of_fastest = std::exp(standing.of_fastest / standing.problems);
      }
    }
  }
  return summary;
}

}  // namespace longca
