#pragma once

#include <cstdint>

#include "attention/kernels/slice/planner/transposed_lists.h"
#include "core/rounding.h"

#ifdef __CUDACC__
#define LONGCA_SLICE_HOST_DEVICE __host__ __device__
#else
#define LONGCA_SLICE_HOST_DEVICE
#endif

// Lists of single tiles of a mask of uniform blocks, from the bits of its kept blocks: the same
// code runs on one thread of the GPU per tile, and on the host.
namespace longca::slice {

/// A query tile of a mask of uniform blocks, each row group in one query block: its lists follow
/// from two rows of bits.
struct BlockTile {
  const std::uint32_t* kept[kRowGroups];  ///< the key blocks that each group sees, 32 per word
  int words;                              ///< per row of bits
  int block_sub_tiles;                    ///< 64-key sub-tiles per key block
};

/// The lengths of a BlockTile's lists. There is one pattern, 0: a narrow tile that all rows of a
/// group see.
struct BlockTileCounts {
  std::int32_t narrow_tiles;       ///< partial tiles of one sub-tile
  std::int32_t pairs[kRowGroups];  ///< partial tiles of two sub-tiles, which a group alone sees
  std::int32_t partial;            ///< all partial tiles
  std::int32_t runs;
  std::int32_t full_tiles;
};

namespace block_tile {

LONGCA_SLICE_HOST_DEVICE inline int bits_in(std::uint32_t word) {
#ifdef __CUDA_ARCH__
  return __popc(word);
#else
  return __builtin_popcount(word);
#endif
}

/// `word` is not 0.
LONGCA_SLICE_HOST_DEVICE inline int lowest_bit(std::uint32_t word) {
#ifdef __CUDA_ARCH__
  return __ffs(static_cast<int>(word)) - 1;
#else
  return __builtin_ctz(word);
#endif
}

/// `word` is not 0.
LONGCA_SLICE_HOST_DEVICE inline int highest_bit(std::uint32_t word) {
#ifdef __CUDA_ARCH__
  return 31 - __clz(static_cast<int>(word));
#else
  return 31 - __builtin_clz(word);
#endif
}

/// Pairs sub-tiles that `group` alone sees; one without a partner becomes a narrow tile. Pairs of
/// both groups come in turn, as far as both have some, so that both are at work at a time.
struct PairWriter {
  PartialTile* narrow_tiles;
  PartialTile* pairs;
  std::int32_t in_turn;  ///< pairs of each group
  int group = 0;
  std::int32_t written = 0;  ///< of `group`
  std::int32_t first = kAbsent;

  LONGCA_SLICE_HOST_DEVICE PartialTile tile(std::int32_t second, std::int32_t pattern) const {
    return {{first, second}, {group == 0 ? pattern : kNone, group == 1 ? pattern : kNone}};
  }
  LONGCA_SLICE_HOST_DEVICE void add(std::int32_t key) {
    if (first == kAbsent) {
      first = key;
    } else {
      pairs[written < in_turn ? 2 * written + group : in_turn + written] = tile(key, kFull);
      ++written;
      first = kAbsent;
    }
  }
  LONGCA_SLICE_HOST_DEVICE void finish() {
    if (first != kAbsent) *narrow_tiles++ = tile(kAbsent, 0);
    first = kAbsent;
  }
};

}  // namespace block_tile

LONGCA_SLICE_HOST_DEVICE inline BlockTileCounts count_block_tile(const BlockTile& tile) {
  int both = 0, runs = 0;
  int alone[kRowGroups] = {0, 0};
  std::uint32_t before = 0;  // bit 0: both groups see the block before
  for (int w = 0; w < tile.words; ++w) {
    const std::uint32_t a = tile.kept[0][w];
    const std::uint32_t b = tile.kept[1][w];
    const std::uint32_t common = a & b;
    both += block_tile::bits_in(common);
    alone[0] += block_tile::bits_in(a & ~b);
    alone[1] += block_tile::bits_in(b & ~a);
    runs += block_tile::bits_in(common & ~(common << 1 | before));
    before = common >> 31;
  }
  const int full = both * tile.block_sub_tiles;
  const int sub_tiles[kRowGroups] = {alone[0] * tile.block_sub_tiles,
                                     alone[1] * tile.block_sub_tiles};
  const int narrow_tiles = sub_tiles[0] % 2 + sub_tiles[1] % 2 + full % 2;
  const int pairs[kRowGroups] = {sub_tiles[0] / 2, sub_tiles[1] / 2};
  return {narrow_tiles, {pairs[0], pairs[1]}, narrow_tiles + pairs[0] + pairs[1], runs, full / 2};
}

/// Writes the partial tiles and runs that count_block_tile counted; one run less where the last one
/// is the single sub-tile left over, which becomes a narrow tile.
LONGCA_SLICE_HOST_DEVICE inline void list_block_tile(const BlockTile& tile,
                                                     const BlockTileCounts& counts,
                                                     PartialTile* partial, FullRun* runs) {
  const std::int32_t block_keys = tile.block_sub_tiles * kSubTileKeys;
  const std::int32_t in_turn =
      counts.pairs[0] < counts.pairs[1] ? counts.pairs[0] : counts.pairs[1];
  block_tile::PairWriter alone{partial, partial + counts.narrow_tiles, in_turn};
  std::int32_t left = 2 * counts.full_tiles;  // sub-tiles that go into runs
  std::int32_t end = -1;                      // of the current run
  std::int32_t over = kAbsent;                // the full sub-tile left over of an odd number
  for (int group = 0; group < kRowGroups; ++group) {
    alone.group = group;
    alone.written = 0;
    for (int w = 0; w < tile.words; ++w) {
      std::uint32_t word = tile.kept[group][w] & ~tile.kept[1 - group][w];
      for (; word != 0; word &= word - 1) {
        const std::int32_t key = (32 * w + block_tile::lowest_bit(word)) * block_keys;
        for (int i = 0; i < tile.block_sub_tiles; ++i) alone.add(key + i * kSubTileKeys);
      }
    }
    alone.finish();
  }
  int run = -1;
  for (int w = 0; w < tile.words; ++w) {
    std::uint32_t word = tile.kept[0][w] & tile.kept[1][w];
    for (; word != 0; word &= word - 1) {
      const std::int32_t key = (32 * w + block_tile::lowest_bit(word)) * block_keys;
      const std::int32_t sub_tiles = left < tile.block_sub_tiles ? left : tile.block_sub_tiles;
      if (sub_tiles < tile.block_sub_tiles) over = key + sub_tiles * kSubTileKeys;
      if (sub_tiles == 0) break;
      if (key == end) {
        runs[run].sub_tiles += sub_tiles;
      } else {
        runs[++run] = {key, sub_tiles};
      }
      end = key + block_keys;
      left -= sub_tiles;
    }
  }
  if (over == kAbsent) return;
  *alone.narrow_tiles = {{over, kAbsent}, {0, 0}};
}

/// A key tile of a mask of uniform blocks, each sub-tile in one key block: its segments follow from
/// two rows of bits.
struct TransposedBlockTile {
  /// The query blocks that see the key block of each sub-tile, 32 per word; the second is nullptr
  /// if the tile has one sub-tile only.
  const std::uint32_t* seen[2];
  int words;                     ///< per row of bits
  const std::int32_t* q_bounds;  ///< tokens; all but the last are multiples of tile_tokens
  int tile_tokens;               ///< of a query tile
  /// TransposedBlockPlan::window_blocks.
  int window_blocks = 0;
};

/// The length of a TransposedBlockTile's list, and what the work order needs.
struct TransposedBlockCounts {
  std::int32_t segments;
  std::int32_t q_tiles;
  std::int32_t q_begin, q_end;  ///< KeyTile
};

/// There are two patterns: the keys of one sub-tile, seen by all rows.
inline constexpr std::int32_t kFirstSubTile = 0;
inline constexpr std::int32_t kSecondSubTile = 1;

namespace block_tile {

/// Writes the segments of one window of query blocks, a word of bits each: first what sees all
/// keys, then blocks that see the first half and the second one in turn, so that the kernel's
/// warpgroups, each with the keys of a half, are at work at a time.
template <typename Write>
struct WindowWriter {
  const TransposedBlockTile& tile;
  Write& write;
  TransposedBlockCounts& counts;

  /// Blocks [begin, end).
  LONGCA_SLICE_HOST_DEVICE void add(int begin, int end, std::int32_t pattern) const {
    const std::int32_t first = tile.q_bounds[begin] / tile.tile_tokens;
    const std::int32_t count = ceil_div(tile.q_bounds[end], tile.tile_tokens) - first;
    write(QuerySegment{first, count, pattern, 0});
    if (counts.segments == 0 || first + count > counts.q_end) counts.q_end = first + count;
    if (counts.segments == 0 || first < counts.q_begin) counts.q_begin = first;
    ++counts.segments;
    counts.q_tiles += count;
  }
  /// Takes the last block of `blocks`, bits from block `base` on.
  LONGCA_SLICE_HOST_DEVICE void add_last(int base, std::uint32_t& blocks,
                                         std::int32_t pattern) const {
    if (blocks == 0) return;
    const int bit = highest_bit(blocks);
    blocks &= ~(std::uint32_t{1} << bit);
    add(base + bit, base + bit + 1, pattern);
  }
  LONGCA_SLICE_HOST_DEVICE void add_window(int base, std::uint32_t first,
                                           std::uint32_t second) const {
    for (std::uint32_t both = first & second; both != 0;) {
      const int end = highest_bit(both) + 1;
      int begin = end;
      while (begin > 0 && (both >> (begin - 1) & 1) != 0) both &= ~(std::uint32_t{1} << --begin);
      add(base + begin, base + end, kFull);
    }
    std::uint32_t alone[2] = {first & ~second, second & ~first};
    while ((alone[0] | alone[1]) != 0) {
      add_last(base, alone[0], kFirstHalf);
      add_last(base, alone[1], kSecondHalf);
    }
  }
};

}  // namespace block_tile

/// Calls `write` with every segment, the last query tiles first, or window by window.
template <typename Write>
LONGCA_SLICE_HOST_DEVICE inline TransposedBlockCounts walk_transposed_block_tile(
    const TransposedBlockTile& tile, Write write) {
  TransposedBlockCounts counts = {0, 0, 0, 0};
  if (tile.window_blocks > 0) {
    const block_tile::WindowWriter<Write> writer{tile, write, counts};
    const std::uint32_t window = ~std::uint32_t{0} >> (32 - tile.window_blocks);
    for (int w = tile.words - 1; w >= 0; --w) {
      const std::uint32_t a = tile.seen[0][w];
      const std::uint32_t b = tile.seen[1] != nullptr ? tile.seen[1][w] : 0;
      for (int shift = 32 - tile.window_blocks; shift >= 0; shift -= tile.window_blocks) {
        writer.add_window(32 * w + shift, a >> shift & window, b >> shift & window);
      }
    }
    return counts;
  }
  int kind = 0;  // of the current run: 1 the first sub-tile is seen, 2 the second, 3 both
  int begin = 0, end = 0;
  const auto finish_run = [&] {
    if (kind == 0) return;
    const std::int32_t first = tile.q_bounds[begin] / tile.tile_tokens;
    const std::int32_t count = ceil_div(tile.q_bounds[end], tile.tile_tokens) - first;
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
