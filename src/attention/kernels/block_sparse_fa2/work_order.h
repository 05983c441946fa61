#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/platform.h"

namespace longca::fa2_sparse {

/// The CTAs of a pass, one per (unit of heads, tile).
struct Work {
  int units = 1;          ///< head units, see BlockArgs::order
  int lists = 1;          ///< unit u uses list u · lists / units
  int tiles = 0;          ///< per list
  int section_units = 1;  ///< units whose CTAs are interleaved, so that they share L2
};

/// BlockArgs::order: sections in order, and within a section CTAs by descending number of visited
/// blocks, for balance, then by tile. `counts` [lists, tiles] are the visited blocks. O(CTAs +
/// blocks).
std::vector<std::int32_t> work_order(const Work& work, std::span<const std::int32_t> counts);

/// Time in tiles until the last CTA ends: CTAs start in `order` as soon as one of `concurrent_ctas`
/// ends, and take tiles_per_block per visited block plus an overhead.
std::int64_t makespan(const Work& work, std::span<const std::int32_t> counts,
                      std::span<const std::int32_t> order, std::int64_t tiles_per_block,
                      int concurrent_ctas,
                      const cost::Platform& platform = cost::default_platform());

/// A backward pass whose KV heads are not yet split.
struct BackwardWork {
  const cost::Platform& platform = cost::default_platform();
  int group_size = 1;  ///< query heads per KV head
  int heads_k = 1;
  int lists = 1;
  int tiles = 0;
  int tiles_per_block = 1;  ///< query tiles per query block
  int heads_in_cache = 1;   ///< query heads whose rows fit in L2 together
  int concurrent_ctas = 1;  ///< CTAs that run at the same time

  /// The CTAs with every KV head split in `parts`. Lists are per query head, or per KV head or
  /// fewer.
  Work split(int parts) const;
};

/// Into how many parts the query heads of a KV head are split (mma::choose_head_parts); the fewest
/// if there are so many CTAs that any split is balanced.
int head_parts(const BackwardWork& work, std::span<const std::int32_t> counts);

}  // namespace longca::fa2_sparse
