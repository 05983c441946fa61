#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace longca::fa2_sparse {

/// The CTAs of a pass: one per (unit of heads, tile).
struct Work {
  int units = 1;          ///< head units: BlockArgs::order
  int lists = 1;          ///< unit u uses list u · lists / units
  int tiles = 0;          ///< of a list
  int section_units = 1;  ///< units whose CTAs start together: what they read fits in L2
};

/// BlockArgs::order. Sections one after the other; inside a section the longest CTAs first, so that
/// they do not end the kernel alone; of equally long ones those of one tile number together.
/// `counts`: visited blocks of (list, tile). O(CTAs + blocks).
std::vector<std::int32_t> work_order(const Work& work, std::span<const std::int32_t> counts);

/// The time in tiles until the last CTA ends, if they start in this order, `concurrent_ctas` run at
/// once, and each takes tiles_per_block per visited block and a constant.
std::int64_t makespan(const Work& work, std::span<const std::int32_t> counts,
                      std::span<const std::int32_t> order, std::int64_t tiles_per_block,
                      int concurrent_ctas);

/// A backward pass before its KV heads are split.
struct BackwardWork {
  int group_size = 1;  ///< query heads that read one KV head
  int heads_k = 1;
  int lists = 1;
  int tiles = 0;
  int tiles_per_block = 1;  ///< query tiles of a query block
  int heads_in_cache = 1;   ///< query heads whose rows fit in L2 together
  int concurrent_ctas = 1;  ///< CTAs that run at once

  /// With every KV head in `parts`; lists are per KV head or fewer, or else per query head.
  Work split(int parts) const;
};

/// Number of parts (a divisor of the group size) into which the query heads of a KV head are split,
/// one CTA per part and key tile. The smallest above 1 (with fewer parts heads drift apart, and L2
/// loses what they share) whose simulated schedule is within 3 % of the shortest; where there are
/// so many CTAs that any split is balanced, the smallest.
int head_parts(const BackwardWork& work, std::span<const std::int32_t> counts);

}  // namespace longca::fa2_sparse
