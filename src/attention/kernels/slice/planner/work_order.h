#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/transposed_lists.h"
#include "attention/kernels/slice/planner/work_items.h"

namespace longca::slice {

/// Whether there are so many items that the tail, in which CTAs end one by one, does not matter.
/// `items`: per KV head.
bool has_many_items(const BackwardWork& work, std::int64_t items);

/// When the last CTA ends, in cycles, if each takes the next item as soon as it is free and `heads`
/// KV heads are in work at a time (TransposedLists::section_heads).
std::int64_t finish_time(std::span<const CostedItem> items, const BackwardWork& work, int heads);

/// Shortens the tail: cuts items of a static mask along queries so that none takes longer than a
/// portion of the time that is left when it is begun, if the CTAs end sufficiently earlier by it.
/// Sets lists.section_heads where more KV heads at a time are better.
void cut_last_items(const BackwardWork& work, TransposedLists& lists,
                    std::vector<CostedItem>& items);

/// Fills in `order`, `split_keys`, `section_heads` and the estimates of lists whose tiles and,
/// unless they are block lists, segments are there.
void order_work(const BackwardWork& work, TransposedLists& lists);

}  // namespace longca::slice
