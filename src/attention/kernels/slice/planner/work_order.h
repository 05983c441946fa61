#pragma once

#include <cstdint>

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// Whether there are so many items that the tail, in which CTAs end one by one, does not matter.
/// `items`: per KV head.
bool has_many_items(const BackwardWork& work, std::int64_t items);

/// Fills in `order`, `split_keys`, `section_heads` and the estimates of lists whose tiles and,
/// unless they are block lists, segments are there.
void order_work(const BackwardWork& work, TransposedLists& lists);

}  // namespace longca::slice
