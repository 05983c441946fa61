#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/work_shares.h"

namespace longca::slice {

/// When the last of the CTAs is done that take shares in turn, in cycles, `heads` KV heads
/// at a time (TransposedLists::section_heads).
std::int64_t finish_time(std::span<const WorkShare> shares, const BackwardWork& work, int heads);

/// Cuts shares of a static mask along queries where that lets the CTAs finish together:
/// nothing takes longer than a portion of the time that is left when it
/// is begun. Sets
/// lists.section_heads where more at a time are better.
void cut_last_shares(const BackwardWork& work, TransposedLists& lists,
                     std::vector<WorkShare>& shares);

}  // namespace longca::slice
