#pragma once

#include "parallel/schemes/build/cast.h"

namespace longca {

/// Where `parts` lie in a buffer that holds `ranges` one after the other. Both ascend and are
/// disjoint; each part lies within one range.
std::vector<Range> rows_among(const std::vector<Range>& ranges, const std::vector<Range>& parts);

/// The stages of `rank`. Sets `split` if `choose_split` is asked and returns one.
std::vector<CastStage> cast_layout(const Grid& grid, int rank, const Cast::Options& options,
                                   const Cast::ChooseSplit& choose_split,
                                   std::optional<JointSplit>& split);

}  // namespace longca
