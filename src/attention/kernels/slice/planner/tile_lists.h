#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cost/platform.h"
#include "mask/mask.h"

namespace longca::slice {

/// A row is a (token, head) pair. A query tile is 128 rows: 128 / P consecutive query tokens × P
/// query heads of one KV head (row r ↔ token r / P, head r % P), where the pack P divides the GQA
/// group (FlashAttention's PackGQA). A warpgroup computes one of its two row groups g ∈ {0, 1}: the
/// tokens [row_begin + g · 64 / P, … + 64 / P). All P heads see the same keys.
inline constexpr int kGroupRows = 64;
inline constexpr int kRowGroups = 2;
/// Keys come in sub-tiles of 64 that may start at any key; a key tile is two of them. Where a
/// sub-tile reaches past the end of K, those keys are masked.
inline constexpr int kSubTileKeys = 64;
inline constexpr int kTileKeys = 2 * kSubTileKeys;

/// What a row group sees of a partial tile where it needs no pattern.
inline constexpr std::int32_t kFull = -1;  ///< everything
inline constexpr std::int32_t kNone = -2;  ///< nothing
/// First key of a sub-tile that is not there.
inline constexpr std::int32_t kAbsent = -1;

/// Which of a key tile's 128 columns a token sees: [lo0, hi0) and [lo1, hi1), ascending and
/// disjoint. Column j is key k_begin[0] + j below 64, key k_begin[1] + j − 64 from there on. An
/// empty interval is 0, 0.
struct RowIntervals {
  std::uint8_t lo0 = 0, hi0 = 0, lo1 = 0, hi1 = 0;
  bool operator==(const RowIntervals&) const = default;
};

/// A key tile that is not full: a row group needs a pattern or sees nothing of it, or it is narrow:
/// of one sub-tile, the second being absent. No pattern of a narrow tile has columns from 64 on,
/// and kFull is not used for it.
struct PartialTile {
  std::int32_t k_begin[2];  ///< of the sub-tiles; the second may be kAbsent
  /// Per row group: kFull, kNone, or i for TileLists::patterns[i · 64 / P … (i + 1) · 64 / P), one
  /// per token.
  std::int32_t pattern[kRowGroups];
};

/// Keys that are loaded at a time where a sub-tile has a joint.
inline constexpr int kJointKeys = 16;

/// Where the keys of a sub-tile go on elsewhere, so that the ends of two ranges of keys fill one:
/// column j is key k_begin + j below `cut`, and key k_begin + j + skip from there on.
class Joint {
 public:
  Joint() = default;  ///< they go on where they are
  /// `cut`: a multiple of kJointKeys in (0, 64); `skip`: within ±kMaxSkip.
  constexpr Joint(int cut, std::int32_t skip) : word_(skip * kSkip + cut / kJointKeys) {}
  /// One that was read as the word that it is.
  explicit constexpr Joint(std::int32_t word) : word_(word) {}

  static constexpr std::int64_t kMaxSkip = (std::int64_t{1} << 29) - 1;
  constexpr bool exists() const { return word_ != 0; }
  constexpr int cut() const { return (word_ & (kSkip - 1)) * kJointKeys; }
  constexpr std::int32_t skip() const { return word_ >> 2; }
  /// What to add to k_begin + `column`.
  constexpr std::int32_t offset(int column) const {
    return exists() && column >= cut() ? skip() : 0;
  }

 private:
  static constexpr std::int32_t kSkip = kSubTileKeys / kJointKeys;  ///< place of `skip`
  static_assert(kSkip == 4);

  std::int32_t word_ = 0;
};

/// Of the sub-tiles of a partial tile.
struct TileJoints {
  Joint joint[2];
};

/// Keys [k_begin, k_begin + 64 · sub-tiles) that every row of the query tile sees.
struct FullRun {
  std::int32_t k_begin;
  std::int32_t sub_tiles;
};

/// How the rows are cut into query tiles.
struct Tiling {
  int pack = 1;  ///< P
  /// Whether the query tiles 2 i and 2 i + 1 of a list have the same key tiles, in the same order,
  /// each with patterns of its own: a cluster of two CTAs then loads these once for both. Only what
  /// all rows of both see is full; a tile that one of them does not see is kNone for both of its
  /// row groups.
  bool row_pairs = false;
  /// Whether sub-tiles may have joints. Kept blocks of any size leave remainders of fewer than 64
  /// keys, each of which would take a sub-tile to itself.
  bool joins = false;

  int tile_tokens() const { return kRowGroups * kGroupRows / pack; }
  int group_tokens() const { return kGroupRows / pack; }
  /// Query tiles that share their key tiles.
  int tiles() const { return row_pairs ? 2 : 1; }
};

/// A query tile and its key tiles, in the order of their computation: narrow ones, other partial
/// ones, full ones (ForwardShape::kUnchecked: full ones before other partial ones). A query tile
/// without key tiles has only rows that see nothing.
struct QueryTile {
  /// Query tokens [row_begin, row_end), at most 128 / P: only theirs of O and LSE are written. None
  /// in the second tile of a pair past the end of Q.
  std::int32_t row_begin, row_end;
  std::int32_t partial_begin, partial_count;
  /// The full tiles are 2 · full_tiles sub-tiles, taken from the runs one after the other; the two
  /// of a tile may come from two runs.
  std::int32_t runs_begin, full_tiles;
  std::int32_t cost;  ///< estimated cycles, for the order
  std::int32_t reserved;
};

/// How many key tiles of each kind a query tile has, and what they cost a CTA of the sm_90a kernel.
struct TileCounts {
  std::int64_t full = 0;
  std::int64_t partial = 0;  ///< of two sub-tiles
  std::int64_t narrow = 0;   ///< partial ones of one sub-tile
  std::int64_t in_turn = 0;  ///< of two sub-tiles, where row groups take turns

  std::int64_t tile_cycles(const cost::SliceForwardCycles& rates) const {
    const double turns = rates.in_turn_tile_share * static_cast<double>(in_turn);
    return full * rates.full_tile_cycles + partial * rates.partial_tile_cycles +
           narrow * rates.sub_tile_cycles +
           static_cast<std::int64_t>(turns * static_cast<double>(rates.full_tile_cycles));
  }
  std::int64_t cycles(const cost::SliceForwardCycles& rates) const {
    return rates.tile_start_cycles + tile_cycles(rates);
  }
  /// In a cluster of two CTAs, which wait for each other.
  std::int64_t pair_cycles(const cost::SliceForwardCycles& rates) const {
    return rates.pair_start_cycles +
           static_cast<std::int64_t>(rates.pair_tile_share *
                                     static_cast<double>(tile_cycles(rates)));
  }
};

/// QueryTile::cost.
inline std::int32_t saturated(std::int64_t cycles) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(cycles, INT32_MAX));
}

/// The key tiles of every query tile of a mask: plain data, copied to the device as it is.
struct TileLists {
  Tiling tiling;
  /// Whether row groups take turns: there are partial tiles of two sub-tiles, one row group alone
  /// sees each of them, all of its rows all keys, and those of the two groups alternate.
  bool in_turn = false;
  /// 1 for a static mask, else the lists of the mask: query head h of H uses h · list_heads / H.
  std::int64_t list_heads = 1;
  std::int64_t tiles_per_list = 0;  ///< tiles[l · tiles_per_list + i] is tile i of list l
  std::vector<QueryTile> tiles;
  std::vector<PartialTile> partial;
  std::vector<TileJoints> joints;  ///< of `partial`; empty if no sub-tile has one
  std::vector<FullRun> runs;
  std::vector<RowIntervals> patterns;
  /// Per list its tiles, [0, tiles_per_list), by descending cost; those of a pair stay together, by
  /// the cost of both.
  std::vector<std::int32_t> order;
};

/// The lists for a pack of 1, 2, 4 or 8. Query tiles follow each other at every tile_tokens();
/// under block lists of blocks of any size some end sooner, with a block (cut_at_blocks). A mask
/// with block lists may be asked for any pack whose P heads share a list. Deterministic. O(slices +
/// partial tiles + tokens / P), without visiting cells.
TileLists make_tile_lists(const Mask& mask, const Tiling& tiling,
                          const cost::Platform& platform = cost::default_platform());

/// On average; 0 without query tiles.
struct KeyTilesPerQueryTile {
  double full = 0;
  double all = 0;
};
KeyTilesPerQueryTile key_tiles_per_query_tile(const TileLists& lists);

/// Fills in `order`, by the costs of the tiles.
void order_tiles(TileLists& lists);

}  // namespace longca::slice
