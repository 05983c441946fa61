#pragma once

#include <cstdint>

#include "parallel/partition/part_packing.h"

namespace longca {

/// Moves exactly `tokens` from one CP rank to another that has room for them, without a cut: one
/// or two short parts for up to two others, or the border between two parts of an atom, whatever
/// changes the areas least. Returns false, and moves nothing, if no such move keeps both areas
/// within 1.5 % of a CP rank's share of what they should be, or as near as they were.
bool transfer_tokens(PartPacking& packing, int from, int to, std::int64_t tokens);

/// Exchanges as many tokens between the CP ranks that need least and most, in the same ways, while
/// that brings their needs nearer to each other. For a packing that has no room left.
void rebalance_in_place(PartPacking& packing);

/// That between any two CP ranks, of up to three whole atoms for others, or for some of them and a
/// border that makes up for the tokens.
void rebalance_thoroughly(PartPacking& packing);

}  // namespace longca
