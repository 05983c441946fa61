#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/compare/compare_records.h"
#include "report/short_names.h"
#include "report/table.h"

namespace longca {

// Views of a comparison: the screen, JSON, a page.

/// What the two sides are called: files, or programs.
struct ComparedNames {
  std::string base;
  std::string next;
};

/// The order in which people read verdicts: what is certain first. JSON keeps that of kVerdicts.
inline constexpr CellVerdict kShownVerdicts[] = {
    CellVerdict::broken,    CellVerdict::slower,   CellVerdict::fixed,   CellVerdict::faster,
    CellVerdict::only_base, CellVerdict::only_new, CellVerdict::unclear, CellVerdict::same};

/// The cells in that order; those that are `same` but for a metric beside the time stand before the
/// unclear ones.
std::vector<const CellComparison*> cells_to_show(const Comparison& comparison);

/// Prints the counts, what differs in the environment, and a line per cell that is not `same` or
/// has changes: at most kMaxComparedLines, but for broken, slower, fixed and faster cells, which
/// all have one.
inline constexpr std::size_t kMaxComparedLines = 60;
void print_comparison(std::ostream& out, const Comparison& comparison, const ComparedNames& names,
                      const TableOptions& options = {});

/// All of it, for programs (docs/guide/compare.md). What was not measured is null.
nlohmann::ordered_json comparison_json(const Comparison& comparison, const ComparedNames& names);

/// A self-contained page: a plot of the ratios with their intervals, and every cell.
void write_comparison_html(std::ostream& out, const Comparison& comparison,
                           const ComparedNames& names);

/// The values of the axes that tell the comparison's cells apart: "flash causal 4096 forward"; the
/// user's own files by their short names.
class CellNames {
 public:
  explicit CellNames(const Comparison& comparison);
  std::string name(const Case& c) const;

 private:
  std::vector<std::string> axes_;
  ShortNames short_names_;
};

/// "+3.1 %".
std::string format_change(double ratio);
/// What else is to be said of a cell in one line: why it broke, memory, error, plan time, clock.
std::string describe_changes(const CellComparison& cell);

}  // namespace longca
