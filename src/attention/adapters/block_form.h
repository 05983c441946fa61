#pragma once

#include <cstdint>
#include <span>

#include "mask/mask.h"

namespace longca {

/// Predicates of masks with block lists, for kernels' can_express.

/// Whether the slices allow every cell, so that kept blocks are full.
bool keeps_whole_blocks(const Mask& mask);
/// Whether the slices are one causal slice with as many queries as keys.
bool keeps_causal_blocks(const Mask& mask);

/// Whether all bounds but the last are multiples of `size`.
bool are_multiples_of(std::int64_t size, std::span<const std::int64_t> bounds);
/// Tokens of the largest block.
std::int64_t largest_block(std::span<const std::int64_t> bounds);

}  // namespace longca
