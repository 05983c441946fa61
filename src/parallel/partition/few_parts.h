#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/partition/part_packing.h"

namespace longca {

/// Up to three parts of one CP rank; −1 for none.
struct FewParts {
  std::array<int, 3> parts = {-1, -1, -1};
  std::int64_t tokens = 0;
  double excess = 0;

  int count() const;
  bool has(int part) const;
};

/// Which of a CP rank's parts are looked at.
struct PartReach {
  std::ptrdiff_t parts = 12;  ///< the shortest ones
  bool triples = false;       ///< not only pairs of them
  bool only_atoms = false;    ///< no parts of atoms that are cut
};

/// All of a CP rank's short parts alone, in pairs and in triples, and none, by tokens.
std::vector<FewParts> few_parts(const PartPacking& packing, int cp_rank, const PartReach& reach);

}  // namespace longca
