#pragma once

#include <cstdint>
#include <vector>

#include "cost/kernel_cost.h"
#include "mask/mask.h"

namespace longca {

/// What a partition of documents balances, besides making few cuts.
enum class PartitionAim : std::uint8_t {
  equal_area,  ///< equal cells: for CPUs, where computing takes nearly all the time
  equal_time   ///< equal end times: CP ranks that wait for keys compute fewer cells
};

/// Assigns packed documents to CP ranks so that these end together and few rows see keys elsewhere:
/// equally many tokens to each CP rank (±1), and documents (mask_atoms) whole where they fit.
///
/// Makes several partitions (part_assignment.h), from ones that overfill CP ranks to keep documents
/// whole to ones that cut early. Takes the cheapest (partition_cost.h) of those whose areas are
/// within 2 % of the mean, or within kMaxDrift for equal time over few CP ranks; if there is none,
/// the one with the most equal areas. Over up to 8 CP ranks rebalances it (time_rebalance.h).
///
/// Returns the ranges of each CP rank, ascending and not touching. Empty where the caller should
/// use `partition_balanced`: a mask without a place to cut, block lists, one CP rank, fewer tokens
/// than CP ranks, and where its areas are clearly more equal or it costs less.
std::vector<std::vector<Range>> partition_documents(
    const Mask& mask, int cp_ranks, PartitionAim aim,
    const cost::Platform& platform = cost::default_platform(), const cost::HeadShape& shape = {});

}  // namespace longca
