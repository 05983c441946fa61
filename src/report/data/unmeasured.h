#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/data/ranking.h"
#include "report/view.h"

namespace longca {

/// A row of a view's overview: the groups of one section that differ in length and ranks alone.
struct OverviewRow {
  const ViewSection* section = nullptr;
  const ViewGroup* group = nullptr;  ///< the first of them: mask and setting are those of all
  /// Runs every kernel (over ranks: scheme) of the row and all passes of the view, but for
  /// command_at, which follows: "longca bench -a kernel=fa3,slice … -a pass=forward,backward".
  std::string command;
};

/// The rows of all sections, in order of appearance.
std::vector<OverviewRow> overview_rows(const View& view);

/// Whether a cell of the group, with a number or without, is of the work; of a step, of both
/// passes.
bool was_run(const ViewGroup& group, RankedWork work);

/// What completes the command of a row: " -a tokens=8192", over ranks " -a tokens=8192 -a ranks=2".
std::string command_at(std::int64_t tokens, int ranks);

}  // namespace longca
