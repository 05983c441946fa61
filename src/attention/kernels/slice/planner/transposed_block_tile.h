#pragma once

#include <cstdint>

#include "attention/kernels/slice/planner/block_tile.h"
#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// A key tile of a mask of uniform blocks, each sub-tile in one key block. Its segments follow from
/// two rows of bits, by the same code on the host and on a GPU.
struct TransposedBlockTile {
  /// The query blocks that see the key block of each sub-tile, 32 per word; the second is nullptr if
  /// the tile has one sub-tile only.
  const std::uint32_t* seen[2];
  int words;
  const std::int32_t* q_bounds;  ///< tokens; all but the last are multiples of tile_tokens
  int tile_tokens;               ///< of a query tile
};

/// The length of its list, and what the work order needs.
struct TransposedBlockCounts {
  std::int32_t segments;
  std::int32_t q_tiles;
  std::int32_t q_begin, q_end;  ///< KeyTile
};

/// There are two patterns: the keys of one sub-tile, seen by all rows.
inline constexpr std::int32_t kFirstSubTile = 0;
inline constexpr std::int32_t kSecondSubTile = 1;

namespace block_tile {

/// `word` is not 0.
LONGCA_SLICE_HOST_DEVICE inline int highest_bit(std::uint32_t word) {
#ifdef __CUDA_ARCH__
  return 31 - __clz(static_cast<int>(word));
#else
  return 31 - __builtin_clz(word);
#endif
}

}  // namespace block_tile

/// Calls `write` with every segment, the last query tiles first.
template <typename Write>
LONGCA_SLICE_HOST_DEVICE inline TransposedBlockCounts walk_transposed_block_tile(
    const TransposedBlockTile& tile, Write write) {
  TransposedBlockCounts counts = {0, 0, 0, 0};
  int kind = 0;  // of the current run: 1 the first sub-tile is seen, 2 the second, 3 both
  int begin = 0, end = 0;
  const auto finish_run = [&] {
    if (kind == 0) return;
    const std::int32_t first = tile.q_bounds[begin] / tile.tile_tokens;
    const std::int32_t count =
        (tile.q_bounds[end] + tile.tile_tokens - 1) / tile.tile_tokens - first;
    const std::int32_t pattern = kind == 3 ? kFull : kind == 1 ? kFirstSubTile : kSecondSubTile;
    if (counts.segments == 0) counts.q_end = first + count;
    counts.q_begin = first;
    write(QuerySegment{first, count, pattern, 0});
    ++counts.segments;
    counts.q_tiles += count;
  };
  for (int w = tile.words - 1; w >= 0; --w) {
    const std::uint32_t a = tile.seen[0][w];
    const std::uint32_t b = tile.seen[1] != nullptr ? tile.seen[1][w] : 0;
    for (std::uint32_t any = a | b; any != 0;) {
      const int bit = block_tile::highest_bit(any);
      any &= ~(std::uint32_t{1} << bit);
      const int here = static_cast<int>((a >> bit & 1) | (b >> bit & 1) << 1);
      const int block = 32 * w + bit;
      if (here != kind || block + 1 != begin) {
        finish_run();
        kind = here;
        end = block + 1;
      }
      begin = block;
    }
  }
  finish_run();
  return counts;
}

}  // namespace longca::slice
