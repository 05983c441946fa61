#pragma once

#include "attention/slice/transposed_lists.h"

namespace longca::slice {

/// Fills in `order`, `shared_keys` and `section_heads` of lists whose tiles, and if not of blocks
/// segments, are there.
void order_work(const BackwardWork& work, TransposedLists& lists);

}  // namespace longca::slice
