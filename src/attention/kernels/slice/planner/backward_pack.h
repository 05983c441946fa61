#pragma once

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// How many query heads of a KV head share the rows of the backward pass's query tiles: the
/// greatest of 1, 2, 4 and 8 that divides `group_size` (the query heads that share a KV head and a
/// list of the mask), as small tiles waste least; less at hundreds of thousands of tokens, whose
/// lists would take long. But 1 where neighbouring key tiles mostly end with queries of their own
/// (sliding windows): CTAs then walk the same rows a window's steps apart, and only with few
/// tokens' rows between do these stay in L2. Deterministic; a few milliseconds for a static mask of
/// a million tokens.
int choose_backward_pack(const Mask& mask, int group_size);

}  // namespace longca::slice
