#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask.h"

namespace longca::slice {

/// Rows of a matrix product's tile are (token, head) pairs. A CTA owns 128 of them: 128 / P
/// consecutive query tokens × P query heads of one KV head (row r ↔ token r / P, head r % P), where
/// the pack factor P divides the GQA group. Its two row groups g ∈ {0, 1} are the tokens
/// [row_begin + g · 64 / P, … + 64 / P). All P heads see the same cells.
inline constexpr int kGroupRows = 64;
inline constexpr int kRowGroups = 2;
/// Keys come in halves of 64 that may start at any key; a key tile is two of them. Keys at and
/// after the end of K count as not allowed, wherever a half reaches beyond it.
inline constexpr int kHalfKeys = 64;
inline constexpr int kTileKeys = 2 * kHalfKeys;

/// What a row group sees of a listed tile, if it needs no pattern.
inline constexpr std::int32_t kFull = -1;  ///< everything
inline constexpr std::int32_t kNone = -2;  ///< nothing
/// The start of a half that is not there.
inline constexpr std::int32_t kAbsent = -1;

/// Which of a key tile's 128 columns a token sees: [lo0, hi0) and [lo1, hi1), ascending and
/// disjoint. Column j is key k_begin[0] + j below 64, key k_begin[1] + j − 64 from there on. An
/// empty interval is 0, 0.
struct RowIntervals {
  std::uint8_t lo0 = 0, hi0 = 0, lo1 = 0, hi1 = 0;
  bool operator==(const RowIntervals&) const = default;
};

/// A key tile that needs a word: partial for a row group, of no use to one of them, or of one half.
/// Columns of an absent half are in no pattern, and no group sees such a tile fully.
struct ListedTile {
  std::int32_t k_begin[2];  ///< the first is there always, the second may be kAbsent
  /// Per row group: kFull, kNone, or i for TileLists::patterns[i · 64 / P … (i + 1) · 64 / P), one
  /// per token.
  std::int32_t pattern[kRowGroups];
};

/// Keys [k_begin, k_begin + 64 · halves) that every row of the query tile sees.
struct FullRun {
  std::int32_t k_begin;
  std::int32_t halves;
};

/// The keys of a CTA: listed tiles first, then full ones. Listed tiles of one half come
/// before the others. A row may see no key of the listed ones; a tile without any tile has rows
/// without keys only.
struct QueryTile {
  std::int32_t row_begin, row_end;  ///< tokens, at most 128 / P; others are not written
  std::int32_t listed_begin, listed_count;
  /// full_tiles key tiles are 2 · full_tiles halves, taken from the runs one after the other; the
  /// two halves of a tile may come from two runs.
  std::int32_t runs_begin, full_tiles;
  std::int32_t cost;  ///< in cycles as estimated, for the order
  std::int32_t reserved;
};

/// What a mask asks of every query tile: plain data, copied to the device as it is.
struct TileLists {
  int pack = 1;  ///< P
  /// 1 for a static mask, else the lists of the mask: query head h of H uses h · list_heads / H.
  std::int64_t list_heads = 1;
  std::int64_t tiles_per_list = 0;  ///< tiles[l · tiles_per_list + i] is tile i of list l
  std::vector<QueryTile> tiles;
  std::vector<ListedTile> listed;
  std::vector<FullRun> runs;
  std::vector<RowIntervals> patterns;
  /// Per list its tiles, [0, tiles_per_list), with the greatest cost first.
  std::vector<std::int32_t> order;

  int tile_tokens() const { return kRowGroups * kGroupRows / pack; }
  int group_tokens() const { return kGroupRows / pack; }
};

/// The lists for `pack` ∈ {1, 2, 4, 8}; a mask with block lists may be asked for any pack whose P
/// heads share a list. Deterministic. O(slices + listed tiles + tokens / P), without visiting
/// cells.
TileLists make_tile_lists(const Mask& mask, int pack);

/// Fills `order` by the costs of the tiles.
void order_tiles(TileLists& lists);

}  // namespace longca::slice
