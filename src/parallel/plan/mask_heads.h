#pragma once

#include "mask/mask.h"

namespace longca {

/// The mask of the query heads [first, first + count) of `heads_q`: head i of the result sees what
/// head first + i of `mask` sees. Returns `mask` itself if it has no block lists or all heads are
/// asked for; else each list of the result serves equally many query heads. count ≥ 1.
Mask heads_of(const Mask& mask, int first, int count, int heads_q);

}  // namespace longca
