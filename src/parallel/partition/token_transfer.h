#pragma once

#include <array>
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

/// Which parts of a CP rank an exchange may take; bounds the search.
struct PartReach {
  std::ptrdiff_t parts = 12;  ///< the number of shortest parts considered
  bool triples = false;       ///< up to three of them together, instead of two
  bool only_atoms = false;    ///< no parts of atoms that are cut
};

/// All choices of a CP rank's parts within reach, the empty one among them, by ascending tokens.
std::vector<FewParts> few_parts(const PartPacking& packing, int cp_rank, const PartReach& reach);

/// Moves exactly `tokens` (above 0) from one CP rank to another that has room for them, without
/// another cut: one or two short parts for up to two others, or the border between two parts of an
/// atom for up to two, whichever changes the areas least. Returns false, and moves nothing, if no
/// such move keeps both areas within 1.5 % of a CP rank's share of what they should be, or as near
/// as they were.
bool transfer_tokens(PartPacking& packing, int from, int to, std::int64_t tokens);

/// Exchanges equal numbers of tokens between CP ranks while that brings their needs nearer to each
/// other: up to three whole atoms for up to three others, or for a border. For a full packing.
void rebalance_thoroughly(PartPacking& packing);

}  // namespace longca
