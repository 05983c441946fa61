#pragma once

#include <cstdint>

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// Fills in lists.region_visits and lists.region_order of a mask of `q_tokens` query tokens:
/// regions whose last visit is of earlier work come first. Nothing for block lists, for so much
/// work that what the end takes is nothing, and for so few query tiles that all are written at
/// once. O(segments + items × query tiles of a head block).
void order_writes(std::int64_t q_tokens, const BackwardWork& work, TransposedLists& lists);

}  // namespace longca::slice
