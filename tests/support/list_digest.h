#pragma once

#include "attention/kernels/slice/planner/tile_lists.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "support/digest.h"

namespace longca::slice {

/// Everything that the kernels read.
void digest(testing::Digest& out, const TileLists& lists);
void digest(testing::Digest& out, const TransposedLists& lists);

}  // namespace longca::slice
