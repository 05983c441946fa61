#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// A WorkItem with what the work order needs to know, summed over all lists that a KV head reads.
struct CostedItem {
  WorkItem item;
  std::int64_t visits = 0;  ///< of query tiles, of all head blocks
  std::int64_t cycles = 0;  ///< estimated
  /// Last query tile of the item's chunk, or of its key tile, at which its CTA starts: items with
  /// the same one become neighbours in the order.
  std::int64_t last = -1;
};

/// Q, dO and dQ of a query tile at 128 dimensions. Chunks of more dimensions have as many bytes
/// (backward_chunk_visits).
inline constexpr std::int64_t kRowTileBytes = std::int64_t{64} << 10;

/// Ends that differ by at most 1 / this of the time are equal: runs of one list on a card differ by
/// more.
inline constexpr std::int64_t kEqualDivisor = 100;

/// Whether rows stay in L2 while CTAs come back to them: if they take kept_cache_share of it at
/// most.
bool stays_in_cache(const BackwardWork& work, std::int64_t bytes);

/// Head blocks of a KV head, which a CTA goes through one after the other.
std::int64_t head_blocks_of(const BackwardWork& work, const TransposedLists& lists);

/// Estimated cycles of an item whose key tile is not split.
std::int64_t item_cycles(const cost::SliceBackwardCycles& cycles, std::int64_t visits);
/// The same with dK and dV added to float32 accumulators, as of a split key tile.
std::int64_t split_item_cycles(const cost::SliceBackwardCycles& cycles, std::int64_t visits);

/// The cycles in which all CTAs would end together, were the items of all KV heads divisible at
/// will. None ends them earlier.
std::int64_t even_cycles(std::span<const CostedItem> items, const BackwardWork& work);

/// Makes items of the key tiles and splits those that are too long:
/// – long tiles at multiples of a chunk of query tiles, so that the CTAs, which do not stay in step
///   over a long walk, find each other's query rows in L2,
/// – in lists of static masks, unless ordered, tiles that would take more than half of a CTA's
///   share of all work.
/// Returns one list of items per order (TransposedLists::order), tile by tile, the last queries of
/// each first. For block lists also fills in lists.split_keys.
std::vector<std::vector<CostedItem>> make_items(const BackwardWork& work, TransposedLists& lists);

/// Puts items that begin with the same query tile (the last of a document, of a chunk) next to each
/// other, so that what they read stays in L2. The group with the costliest item comes first.
///
/// Of equal ones that of the earlier keys comes first: under a window or a causal mask a CTA then
/// begins above its neighbour's rows, and comes down to what that one has read. In a fixed order it
/// would wait below them.
void group_items(std::vector<CostedItem>& items);

/// Appends an item of a static mask's lists to `out` in `parts` of about equally many visits.
void split_item(const BackwardWork& work, const TransposedLists& lists, const CostedItem& item,
                std::int64_t parts, std::vector<CostedItem>& out);

/// For lists of a static mask: fills in lists.split_keys, and WorkItem::split of the items whose
/// key tile has several.
void index_split_keys(std::span<CostedItem> items, TransposedLists& lists);

}  // namespace longca::slice
