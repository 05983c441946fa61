#pragma once

#include <cstdint>

#include "parallel/partition/part_packing.h"

namespace longca {

/// A CP rank has at least this many grains of tokens; atoms are cut in grains.
inline constexpr std::int64_t kGrainsPerCpRank = 16;
/// Over more CP ranks, documents are cut in any case and a few more cuts do not matter.
inline constexpr int kFewCpRanks = 8;

/// How parts are assigned.
struct AssignmentRule {
  /// Area, as a fraction of a CP rank's share, that it may get beyond the share to keep a part
  /// whole; later parts are expected to make up for it.
  double overshoot = 0;
  /// Parts with more than this fraction of a share are long: they come first, and the others are
  /// expected to spread evenly.
  double long_part = 0;
  /// Only parts whose rows have more than the mean area count as long: others cannot fill a share.
  bool only_dense = false;
};

/// Assigns all tokens of an empty packing, equally many to each CP rank (±1): each part to the CP
/// rank that needs it most, or only its end where the whole is too much; then rebalances the needs,
/// and cuts the parts that fitted no CP rank.
void assign_parts(PartPacking& packing, const AssignmentRule& rule);

}  // namespace longca
