#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/transposed_lists.h"
#include "attention/kernels/slice/planner/work_items.h"

// Work whose items do not wait for each other, of so few items that the tail, in which CTAs end one
// by one, matters.
namespace longca::slice {

/// Fills in section_heads of items that do not wait for each other. Rows that leave L2 cost what a
/// cut has to gain. Returns the cycles until the last CTA ends.
std::int64_t choose_sections(const BackwardWork& work, std::span<const CostedItem> items,
                             TransposedLists& lists);

/// Replaces the items of a static mask, which are those of work's chunks, grouped, by those with
/// which the CTAs end first: of chunks of that size or of parts of it, or cut along queries. Fills
/// in section_heads.
void choose_free_work(const BackwardWork& work, TransposedLists& lists,
                      std::vector<CostedItem>& items);

}  // namespace longca::slice
