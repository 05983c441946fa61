#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// Key blocks of a word.
inline constexpr std::int64_t kBlocksPerWord = 32;

/// Words of one (head, query block) of a bitmap over `k_blocks`.
constexpr std::int64_t words_per_row(std::int64_t k_blocks) {
  return (k_blocks + kBlocksPerWord - 1) / kBlocksPerWord;
}

/// Block lists as bits, the form in which they go to a GPU: word w of (head h, query block i) is at
/// (h · q_blocks + i) · words_per_row(k_blocks) + w, its bit b stands for key block 32 w + b, and
/// the bits past the last key block are 0. By several threads.
std::vector<std::uint32_t> block_bits(const BlockLists& lists);

/// The lists of such bits. Throws InternalError if there are not as many words as the bounds and
/// heads ask for, or a bit past the last key block is set.
BlockLists lists_of_bits(std::vector<std::int64_t> q_bounds, std::vector<std::int64_t> k_bounds,
                         int heads, std::span<const std::uint32_t> words);

}  // namespace longca
