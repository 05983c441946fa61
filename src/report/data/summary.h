#pragma once

#include <array>
#include <string>
#include <vector>

#include "report/data/ranking.h"
#include "report/view.h"

namespace longca {

/// How a kernel, or over ranks a scheme, does over the problems of a view that it shares with
/// others.
struct Standing {
  int problems = 0;  ///< that it has a time for
  int first = 0;     ///< where it is the fastest or a tie
  /// Geometric mean over its problems: time of the fastest ÷ its own, 1 where it is the fastest.
  double of_fastest = 0;
};

struct SummaryRow {
  std::string name;  ///< the kernel; over ranks "ring_p2p", with its kernel if several
  std::array<Standing, 3> standings;  ///< by RankedWork

  const Standing& at(RankedWork work) const { return standings[static_cast<std::size_t>(work)]; }
};

struct Summary {
  std::array<int, 3> problems{};  ///< by RankedWork: those that several have a time for
  std::vector<SummaryRow> rows;   ///< in the view's order

  bool has(RankedWork work) const { return problems[static_cast<std::size_t>(work)] > 0; }
};

/// Sums up the rankings of all groups.
Summary summarize(const View& view);

}  // namespace longca
