#pragma once

#include <cstdint>

#include "attention/kernels/slice/planner/tile_lists.h"

#ifdef __CUDACC__
#define LONGCA_SLICE_HOST_DEVICE __host__ __device__
#else
#define LONGCA_SLICE_HOST_DEVICE
#endif

namespace longca::slice {

/// A query tile of a mask of uniform blocks, each row group in one query block: its lists follow
/// from two rows of bits, by the same code on the host and on a GPU.
struct BlockTile {
  const std::uint32_t* kept[kRowGroups];  ///< the key blocks that each group sees, 32 a word
  int words;
  int block_halves;  ///< halves of a block
};

/// How long its lists are. Pattern 0 is a half that all rows see, beside one that is absent.
struct BlockTileCounts {
  std::int32_t singles;  ///< listed tiles of one half
  std::int32_t listed;   ///< with the singles
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

/// Of a word that is not 0.
LONGCA_SLICE_HOST_DEVICE inline int lowest_bit(std::uint32_t word) {
#ifdef __CUDA_ARCH__
  return __ffs(static_cast<int>(word)) - 1;
#else
  return __builtin_ctz(word);
#endif
}

/// Pairs the halves that the same groups see; one without a partner goes to the singles.
struct PairWriter {
  ListedTile* singles;
  ListedTile* pairs;
  bool seen[kRowGroups];
  std::int32_t first = kAbsent;

  LONGCA_SLICE_HOST_DEVICE ListedTile tile(std::int32_t second, std::int32_t pattern) const {
    return {{first, second}, {seen[0] ? pattern : kNone, seen[1] ? pattern : kNone}};
  }
  LONGCA_SLICE_HOST_DEVICE void add(std::int32_t key) {
    if (first == kAbsent) {
      first = key;
    } else {
      *pairs++ = tile(key, kFull);
      first = kAbsent;
    }
  }
  LONGCA_SLICE_HOST_DEVICE void finish() {
    if (first != kAbsent) *singles++ = tile(kAbsent, 0);
    first = kAbsent;
  }
};

}  // namespace block_tile

LONGCA_SLICE_HOST_DEVICE inline BlockTileCounts count_block_tile(const BlockTile& tile) {
  int both = 0, runs = 0;
  int alone[kRowGroups] = {0, 0};
  std::uint32_t before = 0;  // was the block before seen by both?
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
  const int full = both * tile.block_halves;
  const int halves[kRowGroups] = {alone[0] * tile.block_halves, alone[1] * tile.block_halves};
  const int singles = halves[0] % 2 + halves[1] % 2 + full % 2;
  return {singles, singles + halves[0] / 2 + halves[1] / 2, runs, full / 2};
}

/// Writes as many listed tiles and runs as counted; the last run may be left out, if the one half
/// that it would have makes the number odd.
LONGCA_SLICE_HOST_DEVICE inline void list_block_tile(const BlockTile& tile,
                                                     const BlockTileCounts& counts,
                                                     ListedTile* listed, FullRun* runs) {
  const std::int32_t block_keys = tile.block_halves * kHalfKeys;
  block_tile::PairWriter alone{listed, listed + counts.singles, {}};
  std::int32_t left = 2 * counts.full_tiles;  // halves that go into runs
  std::int32_t end = -1;                      // where the run under way ends
  std::int32_t over = kAbsent;                // the half that is left over
  for (int group = 0; group < kRowGroups; ++group) {
    alone.seen[0] = group == 0;
    alone.seen[1] = group == 1;
    for (int w = 0; w < tile.words; ++w) {
      std::uint32_t word = tile.kept[group][w] & ~tile.kept[1 - group][w];
      for (; word != 0; word &= word - 1) {
        const std::int32_t key = (32 * w + block_tile::lowest_bit(word)) * block_keys;
        for (int half = 0; half < tile.block_halves; ++half) alone.add(key + half * kHalfKeys);
      }
    }
    alone.finish();
  }
  int run = -1;
  for (int w = 0; w < tile.words; ++w) {
    std::uint32_t word = tile.kept[0][w] & tile.kept[1][w];
    for (; word != 0; word &= word - 1) {
      const std::int32_t key = (32 * w + block_tile::lowest_bit(word)) * block_keys;
      const std::int32_t halves = left < tile.block_halves ? left : tile.block_halves;
      if (halves < tile.block_halves) over = key + halves * kHalfKeys;
      if (halves == 0) break;
      if (key == end) {
        runs[run].halves += halves;
      } else {
        runs[++run] = {key, halves};
      }
      end = key + block_keys;
      left -= halves;
    }
  }
  if (over == kAbsent) return;
  *alone.singles = {{over, kAbsent}, {0, 0}};
}

}  // namespace longca::slice
