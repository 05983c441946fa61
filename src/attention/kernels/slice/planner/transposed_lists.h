#pragma once

#include <cstdint>
#include <vector>

#include "attention/kernels/slice/planner/tile_lists.h"
#include "mask/mask.h"

namespace longca::slice {

/// The backward pass owns keys: a CTA keeps dK and dV of at most 128 keys of one KV head and
/// walks the query tiles that see them. A query tile is 64 rows, 64 / P consecutive tokens × P
/// query heads of the KV head (row r ↔ token r / P, head r % P); tile i begins at token i · 64 / P.
inline constexpr int kBackwardRows = 64;

/// Query tiles whose visits are counted together (TransposedLists::region_visits).
inline constexpr int kRegionTiles = 16;

/// Query tiles [q_tile, q_tile + count), walked from the last to the first.
struct alignas(16) QuerySegment {
  std::int32_t q_tile = 0;
  std::int32_t count = 0;
  /// kFull, or i for TransposedLists::patterns[i · 128 … (i + 1) · 128).
  std::int32_t pattern = kFull;
  /// How many tiles add to dQ of these query tiles before this one: ordered lists only.
  std::int32_t rank = 0;
};

/// Keys [k_begin, k_end) and the query tiles that see one of these keys.
struct KeyTile {
  std::int32_t k_begin = 0, k_end = 0;  ///< at most 128 keys; no pattern has bits for others
  std::int32_t segments_begin = 0, segments = 0;
  std::int32_t q_tiles = 0;             ///< of all segments
  std::int32_t q_begin = 0, q_end = 0;  ///< all of them are of these query tiles
  std::int32_t reserved = 0;
};

struct KeyRange {
  std::int32_t begin = 0, end = 0;
};

/// What a CTA takes: the query tiles [q_begin, q_end) of a key tile, of each list that its
/// KV head reads.
struct alignas(16) WorkItem {
  std::int32_t tile = 0;  ///< [0, tiles_per_list)
  std::int32_t q_begin = 0, q_end = 0;
  /// −1 if no other item of the list has these keys. Else their sums are added to those of the
  /// others in place `shared` of TransposedLists::shared_keys.
  std::int32_t shared = -1;
};

/// What a mask asks of every key tile: plain data, copied to the device as it is.
struct TransposedLists {
  int pack = 1;  ///< P
  /// 1 for a static mask, else the lists of the mask, whose tiles have the same keys: query head h
  /// of H uses h · list_heads / H.
  std::int64_t list_heads = 1;
  bool of_blocks = false;           ///< the mask has block lists
  std::int64_t tiles_per_list = 0;  ///< tiles[l · tiles_per_list + i] is tile i of list l
  std::vector<KeyTile> tiles;
  std::vector<QuerySegment> segments;
  /// Which rows of a query tile see a key: bit r is row r. 128 words a pattern.
  std::vector<std::uint64_t> patterns;
  std::vector<KeyRange> shared_keys;
  std::int64_t items_per_order = 0;
  /// What there is to do (order_work): one such list for a static mask, else one per KV head, with
  /// the same keys shared.
  std::vector<WorkItem> order;
  /// Work goes through the order for so many KV heads at a time, item by item; it divides their
  /// number.
  std::int32_t section_heads = 1;
  /// Of small static problems, so that dQ can be written where it is done while work goes on
  /// elsewhere: how often a region of query tiles is visited, which are those of all head blocks
  /// one behind the other, and the regions, those first that are done first. Else empty.
  std::vector<std::int32_t> region_visits;
  std::vector<std::int32_t> region_order;

  int tile_tokens() const { return kBackwardRows / pack; }
};

/// Who works on the lists.
struct BackwardWork {
  int heads_q = 1;
  int heads_k = 1;
  int ctas = 132;  ///< at a time
  /// Query tiles of a chunk (share_tiles), in those that a CTA visits: 512 are 4K tokens of
  /// 8 heads, and Q, dO and dQ of these are 32 MB.
  std::int64_t chunk_visits = 512;
  /// Whether what is added to a sum is to be added in a fixed order, that of the work: then no keys
  /// are shared, and segments have ranks.
  bool ordered = false;
};

/// The lists for `pack` ∈ {1, 2, 4, 8}; a mask with block lists may be asked for any pack whose P
/// heads share a list. Deterministic. O(slices + key tiles + partial query tiles), without visiting
/// cells.
TransposedLists make_transposed_lists(const Mask& mask, int pack, const BackwardWork& work);

}  // namespace longca::slice
