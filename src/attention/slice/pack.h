#pragma once

#include "mask/mask.h"

namespace longca::slice {

/// How many query heads of a KV head share the rows of a tile: the smallest of 1, 2, 4 and 8 that
/// divides `group_size` (the query heads that share a KV head and a list of the mask) and whose
/// tiles cost within 1.5 % of the least (tile_cost.h), on a sample of the mask's rows.
/// Deterministic; a millisecond for a static mask.
int choose_pack(const Mask& mask, int group_size);

}  // namespace longca::slice
