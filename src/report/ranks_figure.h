#pragma once

#include <string>
#include <vector>

#include "report/scaling.h"
#include "report/view.h"

namespace longca {

/// One scheme's cells over the numbers of ranks; with shard, factor, transport and kernel where the
/// figure has several.
struct RanksSeries {
  std::string name;                    ///< the scheme and the variant: "ulysses naive"
  std::string variant;                 ///< what sets it apart from others of its scheme, or ""
  std::size_t scheme = 0;              ///< index into View::schemes: its colour
  std::vector<const Record*> cells{};  ///< by ranks, ascending
};

/// One scaling of a mask.
struct RanksPanel {
  std::string title;
  std::vector<int> ranks{};           ///< ascending; x places are indices into it
  std::vector<RanksSeries> series{};  ///< in the order of the schemes

  double place_of(const Record& record) const;
};

/// One mask and pass at one setting of the axes.
struct RanksFigure {
  std::string mask;
  Pass pass = Pass::forward;
  AxisTexts name;     ///< what sets it apart from the others of its mask and pass
  AxisTexts setting;  ///< all axes that its cells share
  RateUnit unit;
  std::vector<RanksPanel> panels{};
};

/// `view` is of the cells over ranks among `records`.
std::vector<RanksFigure> make_ranks_figures(const View& view, const SplitRecords& records);

}  // namespace longca
