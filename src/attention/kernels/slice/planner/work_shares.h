#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// A WorkItem as the order sees it, over all lists that a KV head reads.
struct WorkShare {
  WorkItem item;
  std::int64_t visits = 0;  ///< of query tiles, of all head blocks
  std::int64_t cost = 0;    ///< in cycles as estimated
  std::int64_t last = -1;   ///< query tile: the first that is walked, or that its neighbours walk
};

/// Head blocks of a KV head, which a CTA goes through one after the other.
std::int64_t head_blocks_of(const BackwardWork& work, const TransposedLists& lists);

/// In cycles. A part of a key tile adds its sums to those of the others.
std::int64_t share_cost(std::int64_t visits);
std::int64_t part_cost(std::int64_t visits);

/// Cuts key tiles that are too long and fills in lists.split_keys. Cut are
/// – tiles whose CTAs would fall out of step along the way, where query rows meet again: at
///   multiples of a chunk of query tiles, whose rows L2 holds meanwhile,
/// – in lists of static masks, tiles that would keep one CTA busy for much of the time.
/// One list of shares per order (TransposedLists::order), tile by tile, of each the last queries
/// first. Nothing is cut for ordered work.
std::vector<std::vector<WorkShare>> share_tiles(const BackwardWork& work, TransposedLists& lists);

/// Appends a share of a static mask's lists to `out` in `parts` of about as many visits.
void split_share(const BackwardWork& work, const TransposedLists& lists, const WorkShare& share,
                 std::int64_t parts, std::vector<WorkShare>& out);

/// Of the shares of a static mask: those of tiles that have several get places of shared keys.
void place_shared_keys(std::span<WorkShare> shares, TransposedLists& lists);

}  // namespace longca::slice
