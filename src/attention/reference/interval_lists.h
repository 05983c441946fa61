#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/reference/tile_mask.h"
#include "mask/mask.h"

namespace longca {

/// A half-open range of tokens, as a device reads it.
struct TokenInterval {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  bool operator==(const TokenInterval&) const = default;
};

/// Consecutive partner tiles with an allowed cell, all of them full or none.
struct PartnerRun {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int32_t full = 0;  ///< 1: all 64 × 64 cells of each tile are allowed
  bool operator==(const PartnerRun&) const = default;
};

/// A mask seen from its queries or from its keys: what every token may see (or be seen by) as
/// intervals, and the tiles of 64 tokens that a tile of 64 tokens meets. Made from the intervals of
/// the tokens alone, as TileMask is, so that faults of the mask's tile queries show in what is
/// judged by it. Neighbours in a tile that see the same share a list.
struct IntervalLists {
  std::int64_t tokens = 0;  ///< of the owner's side
  /// [heads, tokens]: token t of the i-th head sees list list_of[i · tokens + t].
  std::vector<std::int32_t> list_of;
  /// List l is intervals[list_offsets[l] … list_offsets[l + 1]): ascending, disjoint.
  std::vector<std::int64_t> list_offsets;
  std::vector<TokenInterval> intervals;
  /// Tile t of the i-th head meets runs[run_offsets[i · tiles + t] … of the next).
  std::vector<std::int64_t> run_offsets;
  std::vector<PartnerRun> runs;
  /// [heads, tiles]: the tiles of a head, those that meet most tiles first.
  std::vector<std::int32_t> order;
  std::int64_t pairs = 0;  ///< of tiles that meet, over all heads

  std::int64_t bytes() const;
};

/// For some heads of a mask, on all threads. O(tokens · intervals), without visiting cells: tokens
/// that no edge of the mask distinguishes from their neighbour are not asked for.
IntervalLists make_interval_lists(const Mask& mask, TileOwner owner, std::span<const int> heads);

}  // namespace longca
