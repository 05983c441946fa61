#pragma once

#include <cstdint>

#include "mask/mask.h"

namespace longca::advise {

/// Tiles of `queries` × `keys` of a head that have a cell, of a grid that begins at the corner of
/// the score matrix. Where block lists keep whole blocks, O(kept blocks + tiles ÷ 64).
std::int64_t count_touched_tiles(const Mask& mask, int head, std::int64_t queries,
                                 std::int64_t keys);

}  // namespace longca::advise
