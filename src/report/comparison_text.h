#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/compare/compare_records.h"
#include "report/table.h"

namespace longca {

// Views of a comparison: the screen, JSON, a page.

/// What the two sides are called: files, or programs.
struct ComparedNames {
  std::string base;
  std::string next;
};

/// Prints the counts, what differs in the environment, and a line per cell that is not `same`,
/// worst first, at most kMaxLines.
inline constexpr std::size_t kMaxComparedLines = 60;
void print_comparison(std::ostream& out, const Comparison& comparison, const ComparedNames& names,
                      const TableOptions& options = {});

/// All of it, for programs (docs/guide/compare.md). What was not measured is null.
nlohmann::ordered_json comparison_json(const Comparison& comparison, const ComparedNames& names);

/// A self-contained page: a plot of the ratios with their intervals, and every cell.
void write_comparison_html(std::ostream& out, const Comparison& comparison,
                           const ComparedNames& names);

/// The values of the axes that tell the comparison's cells apart: "flash causal 4096 forward".
class CellNames {
 public:
  explicit CellNames(const Comparison& comparison);
  std::string name(const Case& c) const;

 private:
  std::vector<std::string> axes_;
};

/// "+3.1 %".
std::string format_change(double ratio);
/// What else is to be said of a cell in one line: why it broke, memory, error, plan time, clock.
std::string describe_changes(const CellComparison& cell);

}  // namespace longca
