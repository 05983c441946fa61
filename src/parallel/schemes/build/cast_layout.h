#pragma once

#include "parallel/schemes/build/cast.h"

namespace longca {

/// All stages of a cast as `rank` sees them.
std::vector<CastStage> cast_layout(const Grid& grid, int rank, const Cast::Options& options);

}  // namespace longca
