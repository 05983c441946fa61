#pragma once

#include <cstdint>

#include "parallel/partition/part_packing.h"

namespace longca {

/// A CP rank's tokens are at least so many grains, the unit in which atoms are cut.
inline constexpr std::int64_t kGrainsPerCpRank = 16;
/// Over more CP ranks documents are cut in any case, and a few more cuts do not count.
inline constexpr int kFewCpRanks = 8;

/// How parts are assigned.
struct AssignmentRule {
  /// How much more than its share a CP rank may get for the sake of a whole part, in the hope that
  /// the parts after it make up for that: in shares of the area.
  double overshoot = 0;
  /// Parts with more of a CP rank's share are assigned as if the others would spread evenly.
  double long_part = 0;
  /// But only those whose rows see more than the mean: others cannot bring a CP rank its area.
  bool only_dense = false;
};

/// Gives every token of a packing in which nobody has anything to a CP rank, as many to each (±1):
/// each part to the CP rank that needs it most, the end of one that is too much for it; then the
/// needs are rebalanced, and what had no room is cut.
void assign_parts(PartPacking& packing, const AssignmentRule& rule);

}  // namespace longca
