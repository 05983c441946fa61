#pragma once

#include "attention/slice/transposed_lists.h"

namespace longca::slice {

/// Fills in `order` and `section_heads` of lists that are otherwise complete.
void order_work(const BackwardWork& work, TransposedLists& lists);

}  // namespace longca::slice
