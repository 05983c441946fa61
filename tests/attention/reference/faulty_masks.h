#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "attention/reference/tile_mask.h"
#include "mask/generators.h"
#include "mask/mask.h"

namespace longca::test {

inline constexpr std::int64_t kSmallWindow = 37;

/// A mask of the table at a small size.
inline Mask small_mask(const std::string& name, std::int64_t tokens,
                       std::int64_t window = kSmallWindow) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.window = window;
  spec.block_tokens = 96;
  return generate_mask(spec).mask;
}

/// 0, step, 2 step, …, tokens.
inline std::vector<std::int64_t> bounds_every(std::int64_t step, std::int64_t tokens) {
  std::vector<std::int64_t> bounds;
  for (std::int64_t begin = 0; begin < tokens; begin += step) bounds.push_back(begin);
  bounds.push_back(tokens);
  return bounds;
}

/// A static mask as one of block lists per query head that keep every block but one of 64 × 64
/// cells.
inline Mask without_tile(const Mask& mask, int heads, int head, std::int64_t q_tile,
                         std::int64_t k_tile) {
  BlockLists blocks;
  blocks.q_bounds = bounds_every(kTile, mask.q_tokens());
  blocks.k_bounds = bounds_every(kTile, mask.k_tokens());
  blocks.heads = heads;
  blocks.offsets = {0};
  for (int h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
      for (std::int64_t j = 0; j < blocks.k_blocks(); ++j) {
        if (h == head && i == q_tile && j == k_tile) continue;
        blocks.indices.push_back(static_cast<std::int32_t>(j));
      }
      blocks.offsets.push_back(static_cast<std::int64_t>(blocks.indices.size()));
    }
  }
  return Mask::from_blocks(mask.q_tokens(), mask.k_tokens(),
                           {mask.slices().begin(), mask.slices().end()}, blocks);
}

/// A static mask without its last key column.
inline Mask without_last_key(const Mask& mask) {
  BlockLists blocks;
  blocks.q_bounds = {0, mask.q_tokens()};
  blocks.k_bounds = {0, mask.k_tokens() - 1, mask.k_tokens()};
  if (mask.k_tokens() == 1) blocks.k_bounds = {0, 1};
  blocks.offsets = {0, mask.k_tokens() == 1 ? 0 : 1};
  if (mask.k_tokens() > 1) blocks.indices = {0};
  return Mask::from_blocks(mask.q_tokens(), mask.k_tokens(),
                           {mask.slices().begin(), mask.slices().end()}, blocks);
}

/// Key k is allowed for k ≤ q + by, by = ±1.
inline Mask shifted_causal(std::int64_t tokens, int by) {
  std::vector<MaskSlice> slices;
  if (by < 0) {
    slices = {{1, tokens, 0, tokens - 1, MaskSliceType::causal}};
  } else {
    slices = {{0, tokens - 1, 0, tokens, MaskSliceType::causal},
              {tokens - 1, tokens, 0, tokens, MaskSliceType::full}};
  }
  return Mask::from_slices(tokens, tokens, slices);
}

/// Consecutive documents of the given lengths.
inline Mask documents(const std::vector<std::int64_t>& lengths, MaskSliceType type) {
  std::vector<MaskSlice> slices;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    slices.push_back({begin, begin + length, begin, begin + length, type});
    begin += length;
  }
  return Mask::from_slices(begin, begin, slices);
}

}  // namespace longca::test
