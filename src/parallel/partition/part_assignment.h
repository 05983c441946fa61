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
  /// Restricts that to parts whose rows see more than the mean: others cannot fill a CP rank's
  /// share.
  bool only_dense = false;
};

/// Assigns all tokens of an empty packing, as many to each CP rank (±1): each part to the CP rank
/// that needs it most, or only its end where the whole is too much; then rebalances the needs, and
/// cuts the parts that fitted no CP rank.
void assign_parts(PartPacking& packing, const AssignmentRule& rule);

}  // namespace longca
