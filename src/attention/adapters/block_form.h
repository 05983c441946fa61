#pragma once

#include <cstdint>
#include <span>

#include "mask/mask.h"

namespace longca {

/// What kernels of block lists ask of a mask before they take it. The masks are those with block
/// lists.

/// Whether a kept block is kept as a whole: the slices behind the lists allow every cell.
bool keeps_whole_blocks(const Mask& mask);
/// Whether the slices behind the lists are one causal one of as many queries as keys.
bool keeps_causal_blocks(const Mask& mask);

/// Whether blocks can be cut into ones of `size` tokens, of which only the last may be smaller.
bool are_multiples_of(std::int64_t size, std::span<const std::int64_t> bounds);
/// Tokens of the largest block.
std::int64_t largest_block(std::span<const std::int64_t> bounds);

}  // namespace longca
