#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/reference/tile_mask.h"
#include "mask/mask.h"

namespace longca {

/// A half-open range of tokens, in device memory.
struct TokenInterval {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  bool operator==(const TokenInterval&) const = default;
};

/// Consecutive non-empty partner tiles, all full or all partial.
struct PartnerRun {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int32_t full = 0;  ///< 1: all 64 × 64 cells of each tile are allowed
  bool operator==(const PartnerRun&) const = default;
};

/// A mask by its queries or by its keys (the owner, see TileOwner): every token's allowed partners
/// as intervals, and every 64-token tile's non-empty partner tiles. Derived, as TileMask is, from
/// the mask's per-token intervals alone, so that the reference reveals faults of the mask's tile
/// queries. Neighbours in a tile with equal intervals share a list.
struct IntervalLists {
  std::int64_t tokens = 0;  ///< of the owner's side
  /// [heads, tokens]: the list of token t of the i-th head is list_of[i · tokens + t].
  std::vector<std::int32_t> list_of;
  /// List l is intervals[list_offsets[l] … list_offsets[l + 1]): ascending, disjoint.
  std::vector<std::int64_t> list_offsets;
  std::vector<TokenInterval> intervals;
  /// Tile t of the i-th head has runs[run_offsets[i · tiles + t] … run_offsets[i · tiles + t + 1]).
  std::vector<std::int64_t> run_offsets;
  std::vector<PartnerRun> runs;
  /// [heads, tiles]: the tiles of a head by descending number of partner tiles.
  std::vector<std::int32_t> order;
  std::int64_t pairs = 0;  ///< non-empty pairs of tiles over all heads

  std::int64_t bytes() const;
};

/// The lists of some heads of a mask; multithreaded. O(tokens · intervals): runs of tokens between
/// edges of the mask share one query.
IntervalLists make_interval_lists(const Mask& mask, TileOwner owner, std::span<const int> heads);

}  // namespace longca
