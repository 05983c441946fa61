#pragma once

#include "parallel/schemes/build/cast.h"

namespace longca {

/// The stages of `rank`. Sets `split` if `choose_split` is asked and returns one.
std::vector<CastStage> cast_layout(const Grid& grid, int rank, const Cast::Options& options,
                                   const Cast::ChooseSplit& choose_split,
                                   std::optional<JointSplit>& split);

}  // namespace longca
