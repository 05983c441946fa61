#pragma once

#include <cstdint>
#include <vector>

#include "attention/slice/transposed_lists.h"

namespace longca::slice {

/// A WorkItem as the order sees it, over all lists that a KV head reads.
struct WorkShare {
  WorkItem item;
  std::int64_t cost = 0;   ///< in cycles as estimated
  std::int64_t last = -1;  ///< query tile: the first that is walked, or that its neighbours walk
};

/// Cuts key tiles that are too long and fills in lists.shared_keys. Cut are
/// – tiles whose work groups would fall out of step along the way, where query rows meet again: at
///   multiples of a chunk of query tiles, whose rows L2 holds meanwhile,
/// – in lists of static masks, tiles that would keep one work group busy for much of the time.
/// One list of shares per order (TransposedLists::order), tile by tile, of each the last queries
/// first. Nothing is cut for ordered work.
std::vector<std::vector<WorkShare>> share_tiles(const BackwardWork& work, TransposedLists& lists);

}  // namespace longca::slice
