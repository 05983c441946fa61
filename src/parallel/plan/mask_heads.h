#pragma once

#include "mask/mask.h"

namespace longca {

/// The mask of query heads [first, first + count) of `heads_q`, as those heads alone see it: head i
/// of the result's `count` query heads sees what head first + i of the whole sees. The same mask
/// where there are no block lists, or where all heads are asked for; else one list for each run of
/// query heads that share one, wherever the runs are equally long. count ≥ 1.
Mask heads_of(const Mask& mask, int first, int count, int heads_q);

}  // namespace longca
