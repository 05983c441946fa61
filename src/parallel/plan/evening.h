#pragma once

#include "parallel/plan/part_packing.h"

namespace longca {

/// Makes the needs of a packing's positions more equal: parts are swapped, or the border between
/// two parts of an atom is shifted, between a position with most or least and others, while that
/// helps.
void even_out(PartPacking& packing);

}  // namespace longca
