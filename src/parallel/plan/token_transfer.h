#pragma once

#include <cstdint>

#include "parallel/plan/part_packing.h"

namespace longca {

/// Moves exactly `tokens` from one position to another that has room for them, without a cut: one
/// or two short parts for up to two others, or the border between two parts of an atom, whatever
/// changes the areas least. Returns false, and moves nothing, if no such move keeps both areas
/// within 1.5 % of a position's share of what they should be, or as near as they were.
bool transfer_tokens(PartPacking& packing, int from, int to, std::int64_t tokens);

/// Exchanges as many tokens between two positions, in the same ways, so that their needs come
/// nearer to each other. Returns whether there was a way.
bool exchange_equal(PartPacking& packing, int from, int to);

/// That between the positions that need least and most, while it helps. For a packing that has no
/// room left.
void even_out_in_place(PartPacking& packing);

}  // namespace longca
