#pragma once

#include <cstdint>

#include "parallel/plan/part_packing.h"

namespace longca {

/// A position's tokens are at least so many grains, the unit in which atoms are cut.
inline constexpr std::int64_t kGrainsOfPosition = 16;
/// Over more positions documents are cut in any case, and a few more cuts do not count.
inline constexpr int kFewPositions = 8;

/// How parts are dealt.
struct DealRule {
  /// How much more than its share a position may get for the sake of a whole part, in the hope that
  /// the parts after it make up for that: in shares of the area.
  double overshoot = 0;
  /// Parts with more of a position's share are dealt as if the others would spread evenly.
  double long_part = 0;
  /// But only those whose rows see more than the mean: others cannot bring a position its area.
  bool only_dense = false;
};

/// Gives every token of a packing in which nobody has anything to a position, as many to each (±1):
/// each part to the position that needs it most, the end of one that is too much for it; then the
/// needs are evened out, and what had no room is cut.
void deal_parts(PartPacking& packing, const DealRule& rule);

}  // namespace longca
