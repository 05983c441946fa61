#pragma once

#include "parallel/schemes/build/cast.h"

namespace longca {

/// All stages of a cast as `rank` sees them. `split` becomes the chosen one.
std::vector<CastStage> cast_layout(const Grid& grid, int rank, const Cast::Options& options,
                                   const Cast::ChooseSplit& choose_split,
                                   std::optional<JointSplit>& split);

}  // namespace longca
