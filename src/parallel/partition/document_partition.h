#pragma once

#include <cstdint>
#include <vector>

#include "cost/kernel_cost.h"
#include "mask/mask.h"

namespace longca {

/// What a partition of documents aims at, besides few cuts.
enum class PartitionAim : std::uint8_t {
  equal_area,  ///< all compute as many cells: CPUs, where computing takes nearly all the time
  equal_time   ///< all end together: CP ranks that wait for keys compute less
};

/// Packed documents assigned to CP ranks so that these end together and few keys and few rows of a
/// document are apart: as many tokens to each CP rank (±1), and documents (mask_atoms) whole where
/// they fit.
///
/// Makes several partitions (part_assignment.h), from ones that overfill CP ranks for the sake of
/// whole documents to ones that cut early. Takes the cheapest (partition_cost.h) of those whose
/// areas are within 2 % of the mean, or within kMaxDrift where few CP ranks are to take equal time;
/// if there is none, the most equal. Over up to 8 CP ranks rebalances it (time_rebalance.h).
///
/// Per CP rank: ascending, not touching. Empty where `partition_balanced` serves as well: a mask
/// without a place to cut, block lists, one CP rank, fewer tokens than CP ranks, and where its
/// areas are clearly more equal or it costs less.
std::vector<std::vector<Range>> partition_documents(
    const Mask& mask, int cp_ranks, PartitionAim aim,
    const cost::Platform& platform = cost::default_platform(), const cost::HeadShape& shape = {});

}  // namespace longca
