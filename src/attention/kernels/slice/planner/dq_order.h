#pragma once

#include <cstdint>

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// For additions in the order of the work: gives every segment its prior_adds, how many items of
/// its list come before its own in the order and visit the same query tiles, and every item its
/// prior_parts. Cuts segments where that number changes and where an item ends. O(segments, cut).
void number_additions(std::int64_t q_tokens, TransposedLists& lists);

/// Fills in lists.region_visits and lists.region_order of a mask of `q_tokens` query tokens:
/// regions whose last visit comes earlier in the work come first. Does nothing for block lists, for
/// so many items that the tail does not matter, and for so few query tiles that all are written at
/// once. O(segments + items × query tiles of a head block).
void order_writes(std::int64_t q_tokens, const BackwardWork& work, TransposedLists& lists);

}  // namespace longca::slice
