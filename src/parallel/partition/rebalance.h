#pragma once

#include "parallel/partition/part_packing.h"

namespace longca {

/// Makes the needs of a packing's CP ranks more equal, within their free tokens: between the most
/// or least loaded CP rank and others, swaps parts or shifts the border between two parts of an
/// atom.
void rebalance(PartPacking& packing);

}  // namespace longca
