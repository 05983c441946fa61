#pragma once

#include <cstdint>
#include <vector>

#include "attention/kernels/slice/planner/transposed_lists.h"
#include "attention/kernels/slice/planner/work_items.h"

namespace longca::slice {

/// Chooses the items, which are those of work's chunks, grouped, and how many KV heads are in work
/// at a time, where gradients are added in a fixed order and so items wait for each other. More
/// heads wait less, but their rows have to stay in L2: so chunks are made smaller for them. Fills
/// in section_heads and split_keys. At most `max_items` items of all KV heads are scheduled.
void choose_ordered_work(const BackwardWork& work, std::int64_t max_items, TransposedLists& lists,
                         std::vector<CostedItem>& items);

}  // namespace longca::slice
