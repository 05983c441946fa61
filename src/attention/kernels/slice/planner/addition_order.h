#pragma once

#include <cstdint>

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// Gives every segment its rank: how many tiles of its list come before its own in the order and
/// visit the same query tiles. The order has every tile once. Segments are cut where the rank
/// changes. O(visits).
void rank_additions(std::int64_t q_tokens, TransposedLists& lists);

}  // namespace longca::slice
