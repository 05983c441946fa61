#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "attention/api/problem.h"
#include "attention/kernels/slice/instance_dim.h"
#include "attention/kernels/slice/planner/tile_lists.h"
#include "cost/platform.h"
#include "mask/mask.h"

namespace longca::slice {

/// In the backward pass a CTA owns a key tile: it keeps dK and dV of at most 128 keys of one KV
/// head and visits the query tiles that see them. A query tile is 64 rows: 64 / P consecutive
/// tokens × P query heads of the KV head (row r ↔ token r / P, head r % P); tile i begins at token
/// i · 64 / P.
inline constexpr int kBackwardRows = 64;

/// Keys of a key tile at most: of 128, dK and dV of more than 128 dimensions would not fit into a
/// CTA's registers.
constexpr int backward_tile_keys(const DimPair& dims) {
  return dims.value_dim > 128 ? kSubTileKeys : kTileKeys;
}

/// Whether there is a kernel without a softcap for lists that tell halves
/// (BackwardWork::tells_halves).
constexpr bool takes_halves(const DimPair& dims) {
  return instance_dim(dims) == 128;
}

/// Visits per chunk of a long key tile's rows (make_items): the page's figure is for 128
/// dimensions, and wider rows fill L2 with fewer visits.
inline std::int64_t backward_chunk_visits(const cost::Platform& platform, const DimPair& dims) {
  return platform.slice.backward.chunk_visits * 2 * 128 /
         std::max(dims.head_dim + dims.value_dim, 2 * 128);
}

/// Query tiles per region, whose visits are counted together (TransposedLists::region_visits).
inline constexpr int kRegionTiles = 16;

/// QuerySegment::pattern where lists tell halves (TransposedLists::tells_halves): every row sees
/// all of one half of a tile's 128 keys and none of the other.
inline constexpr std::int32_t kFirstHalf = -3;
inline constexpr std::int32_t kSecondHalf = -4;
/// From this bit on, a pattern that shows keys of one half only says which: 1 or 2.
inline constexpr int kSeenHalfShift = 28;

/// Which halves of a key tile's keys the rows of `pattern` see, 1 for the first, 2 for the second;
/// both where the lists do not tell. And the index of the pattern, if it is one.
constexpr int seen_halves(std::int32_t pattern) {
  if (pattern <= kFirstHalf) return kFirstHalf + 1 - pattern;
  return pattern > 0 && pattern >> kSeenHalfShift != 0 ? pattern >> kSeenHalfShift : 3;
}
constexpr std::int32_t pattern_index(std::int32_t pattern) {
  return pattern & ((1 << kSeenHalfShift) - 1);
}

/// Query tiles [q_tile, q_tile + count) of a head block, visited from the last to the first.
struct alignas(16) QuerySegment {
  std::int32_t q_tile = 0;
  std::int32_t count = 0;
  /// kFull, or i for TransposedLists::patterns[i · 128 … (i + 1) · 128), the same for all of them;
  /// if tells_halves also kFirstHalf, kSecondHalf, or i with the half that it shows.
  std::int32_t pattern = kFull;
  /// How many items add to dQ of these query tiles before this one; 0 unless ordered.
  std::int32_t prior_adds = 0;
};

/// Keys [k_begin, k_end) and the query tiles that see one of these keys.
struct KeyTile {
  std::int32_t k_begin = 0, k_end = 0;  ///< BackwardWork::tile_keys at most; no pattern has others
  /// The last query tiles first; but where block lists tell halves, those of a window of query
  /// tiles, which no chunk cuts, are in the order of block_tile.h.
  std::int32_t segments_begin = 0, segments = 0;
  std::int32_t q_tiles = 0;             ///< in all segments
  std::int32_t q_begin = 0, q_end = 0;  ///< range of query tiles that contains these
  std::int32_t reserved = 0;
};

struct KeyRange {
  std::int32_t begin = 0, end = 0;
};

/// What a CTA takes from the order: the visits of a key tile to those of its query tiles that are
/// in [q_begin, q_end), for each head block of the KV head, by the list that it reads.
struct alignas(16) WorkItem {
  std::int32_t tile = 0;  ///< [0, tiles_per_list)
  std::int32_t q_begin = 0, q_end = 0;
  /// −1 if no other item has these keys. Else the key tile is split among items, which add up dK
  /// and dV in float32 accumulators: an index of TransposedLists::split_keys.
  std::int32_t split = -1;
};

/// The query tiles of every key tile of a mask: plain data, copied to the device as it is.
struct TransposedLists {
  int pack = 1;  ///< P
  /// 1 for a static mask, else the lists of the mask, whose tiles have the same keys: query head h
  /// of H uses h · list_heads / H.
  std::int64_t list_heads = 1;
  bool of_blocks = false;           ///< the mask has block lists
  bool tells_halves = false;        ///< patterns are as BackwardWork::tells_halves says
  std::int64_t tiles_per_list = 0;  ///< tiles[l · tiles_per_list + i] is tile i of list l
  std::vector<KeyTile> tiles;
  std::vector<QuerySegment> segments;
  /// Which rows of a query tile see a key: bit r is row r. 128 words a pattern.
  std::vector<std::uint64_t> patterns;
  std::vector<KeyRange> split_keys;  ///< keys of the split key tiles, the same for all lists
  std::int64_t items_per_order = 0;
  /// The work items in the order in which CTAs take them: one list for a static mask, else one per
  /// KV head, with the same key tiles split.
  std::vector<WorkItem> order;
  /// If ordered and a key tile is split: for each item of `order`, how many with query tiles to
  /// visit, of the same keys and list, come before it.
  std::vector<std::int32_t> prior_parts;
  /// KV heads in work at a time: CTAs take every item of the order for all of them before the next
  /// item. Divides the number of KV heads.
  std::int32_t section_heads = 1;
  double end_cycles = 0;   ///< estimated cycles of an SM until the last CTA ends
  double chunk_items = 0;  ///< mean number per CTA of items that are chunks of a key tile's rows
  /// For small static problems, whose dQ is rounded region by region while other regions are still
  /// computed; else empty. Region r is query tiles [16 r, 16 r + 16), counted over all head blocks.
  std::vector<std::int32_t> region_visits;  ///< visits until the region is complete
  std::vector<std::int32_t> region_order;   ///< regions, in the expected order of completion

  int tile_tokens() const { return kBackwardRows / pack; }
  /// Of a key tile, the last query tiles first.
  std::span<const QuerySegment> segments_of(const KeyTile& tile) const {
    return std::span(segments).subspan(static_cast<std::size_t>(tile.segments_begin),
                                       static_cast<std::size_t>(tile.segments));
  }
  /// One past the last query tile that any key tile visits.
  std::int64_t query_tiles() const {
    std::int64_t end = 0;
    for (const KeyTile& tile : tiles) end = std::max<std::int64_t>(end, tile.q_end);
    return end;
  }
};

/// The problem and the device that work is ordered for.
struct BackwardWork {
  const cost::Platform& platform = cost::default_platform();
  int heads_q = 1;
  int heads_k = 1;
  int ctas = static_cast<int>(platform.device.sms);  ///< that run at a time: one per SM
  /// Visits per chunk of a long key tile's rows: query tiles × head blocks (make_items).
  std::int64_t chunk_visits = platform.slice.backward.chunk_visits;
  int tile_keys = kTileKeys;  ///< of a key tile at most: 64 or 128 (backward_tile_keys)
  /// Whether gradients are added up in a fixed order, that of the work: then segments have
  /// prior_adds, and items of split key tiles prior_parts.
  bool ordered = false;
  bool has_chunks = true;  ///< whether long key tiles are split into chunks (make_items)
  /// Whether patterns may say which half of the keys they show: of key tiles of 128, for a kernel
  /// whose warpgroups then visit different query tiles. Lists do so where many visits see one
  /// half, those that the GPU makes of bits wherever a key tile has two blocks.
  bool tells_halves = false;
};

/// Query tiles of a window in which segments that tell halves are put in order. Chunks have whole
/// windows: make_items makes them of chunk_visits / head blocks, half of that, or a multiple.
inline std::int64_t window_tiles(const BackwardWork& work, int pack) {
  const std::int64_t head_blocks = work.heads_q / work.heads_k / pack;
  const std::int64_t chunk = std::max<std::int64_t>(1, work.chunk_visits / head_blocks);
  return std::max<std::int64_t>(1, std::gcd(chunk, chunk / 2));
}

/// The lists for `pack` ∈ {1, 2, 4, 8}; a mask with block lists may be asked for any pack whose P
/// heads share a list. Deterministic. O(slices + key tiles + partial query tiles), without visiting
/// cells.
TransposedLists make_transposed_lists(const Mask& mask, int pack, const BackwardWork& work);

}  // namespace longca::slice
