#pragma once

#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/planner/tile_lists.h"

namespace longca::slice {

/// Whether the CTAs of a forward pass work in pairs: on neighbouring query tiles
/// (Tiling::row_pairs) or head blocks (pairs_fit). Where row groups take turns on key tiles
/// (`in_turn`) none do: no kernel has both.
inline bool has_cta_pairs(const Tiling& tiling, bool in_turn, int group_size, int head_dim) {
  return !in_turn && (tiling.row_pairs || pairs_fit(group_size, tiling.pack, head_dim));
}

}  // namespace longca::slice
