#pragma once

#include "parallel/partition/part_packing.h"

namespace longca {

/// Makes the needs of a packing's CP ranks more equal: parts are swapped, or the border between
/// two parts of an atom is shifted, between a CP rank with most or least and others, while that
/// helps.
void rebalance(PartPacking& packing);

}  // namespace longca
