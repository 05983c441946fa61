#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "attention/kernels/slice/planner/transposed_lists.h"
#include "attention/kernels/slice/planner/work_items.h"

namespace longca::slice {

/// When the last CTA ends, in cycles, if each takes the next item as soon as it is free and `heads`
/// KV heads are in work at a time (TransposedLists::section_heads).
std::int64_t finish_time(std::span<const CostedItem> items, const BackwardWork& work, int heads);

/// KV heads in work at a time, and the cycles until the last CTA ends.
struct SectionHeads {
  std::int32_t heads = 1;
  std::int64_t cycles = 0;
};

/// The fewest KV heads at a time, whose rows stay in L2, with which the CTAs end nearly as early as
/// with the best number: at most 1 / `slack_divisor` later. `finish` gives the cycles for a number
/// of KV heads at a time; `even_finish` are those in which all CTAs would end together.
SectionHeads choose_section_heads(const BackwardWork& work, std::int64_t slack_divisor,
                                  std::int64_t even_finish,
                                  const std::function<std::int64_t(int)>& finish);

}  // namespace longca::slice
