#pragma once

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// Whether there is so much to do that what the end takes is nothing. `items`: of each KV head.
bool has_many_items(const BackwardWork& work, std::int64_t items);

/// Fills in `order`, `split_keys` and `section_heads` of lists whose tiles, and if not of blocks
/// segments, are there.
void order_work(const BackwardWork& work, TransposedLists& lists);

}  // namespace longca::slice
