#pragma once

#include "mask/mask.h"

namespace longca::slice {

/// Do two CTAs take neighbouring head blocks of a KV head together, each loading a half of
/// every key tile for both? `group_size` is the query heads that share a KV head and a list.
bool pairs_fit(int group_size, int pack);

/// How many query heads of a KV head share the rows of a tile: the smallest of 1, 2, 4 and 8 that
/// divides `group_size` (the query heads that share a KV head and a list of the mask) and whose
/// tiles cost within 1.5 % of the least (tile_cost.h), on a sample of the mask's rows; where pairs
/// fit, the cost is theirs. Millions of tokens have smaller packs, so that planning takes 10 ms.
/// Deterministic; a millisecond for a static mask.
int choose_pack(const Mask& mask, int group_size);

}  // namespace longca::slice
