#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/rounding.h"

namespace longca {

/// Per-head lists of kept key blocks, of the block-sparse masks (13 and 14).
struct BlockLists {
  /// Block boundaries, ascending from 0 to the number of queries or keys: block i covers
  /// [bounds[i], bounds[i + 1]).
  std::vector<std::int64_t> q_bounds;
  std::vector<std::int64_t> k_bounds;
  /// The number of KV heads or of query heads. Query head h of H uses the lists of head
  /// h · heads / H.
  int heads = 1;
  /// CSR over (head, query block): the kept key blocks of (h, i) are
  /// indices[offsets[h · q_blocks + i] … offsets[h · q_blocks + i + 1]), ascending and distinct.
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> indices;

  std::int64_t q_blocks() const { return static_cast<std::int64_t>(q_bounds.size()) - 1; }
  std::int64_t k_blocks() const { return static_cast<std::int64_t>(k_bounds.size()) - 1; }
  std::span<const std::int32_t> kept(int head, std::int64_t q_block) const;
  bool operator==(const BlockLists&) const = default;
};

/// Throws InputError that names the head and block unless the lists fit a mask of these tokens.
void check_block_lists(const BlockLists& blocks, std::int64_t q_tokens, std::int64_t k_tokens);

/// The index of the block that holds `token`, for ascending bounds from 0.
std::int64_t block_of(const std::vector<std::int64_t>& bounds, std::int64_t token);

/// Key blocks per word of a bitmap.
inline constexpr std::int64_t kBlocksPerWord = 32;

/// Bitmap words per (head, query block).
constexpr std::int64_t words_per_row(std::int64_t k_blocks) {
  return ceil_div(k_blocks, kBlocksPerWord);
}

/// Block lists as a bitmap [heads, q_blocks, words_per_row], the form that is copied to a GPU: bit
/// b of word w is key block 32 w + b, and bits past the last key block are 0. Multithreaded.
std::vector<std::uint32_t> block_bits(const BlockLists& lists);

/// The inverse of `block_bits`. Throws InternalError for a wrong number of words, or if a bit past
/// the last key block is set.
BlockLists lists_of_bits(std::vector<std::int64_t> q_bounds, std::vector<std::int64_t> k_bounds,
                         int heads, std::span<const std::uint32_t> words);

}  // namespace longca
