#pragma once

#include "parallel/partition/part_packing.h"

namespace longca {

/// Makes the needs of a packing's CP ranks more equal, within their room: swaps parts, or shifts
/// the border between two parts of an atom, between the CP rank with most or least and others.
void rebalance(PartPacking& packing);

}  // namespace longca
