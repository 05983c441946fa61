#pragma once

#include <vector>

#include "mask/mask.h"

namespace longca {

/// Packed documents dealt to positions so that few keys and few rows of a document are apart: as
/// many tokens to each position (±1), areas at most 0.02 of the mean less equal than those of
/// `deal_balanced`, and documents (mask_atoms) whole where they fit.
///
/// Several deals are made (part_dealer.h), from ones that overfill positions for the sake of whole
/// documents to ones that cut early. Of those with areas within 2 % the cheapest is taken
/// (deal_cost.h, and what waiting for the largest area costs), of others the most equal.
///
/// Per position: ascending, not touching. Empty where `deal_balanced` serves as well: a mask
/// without a place to cut, block lists, one position, fewer tokens than positions, and where its
/// areas are clearly more equal or its deal costs less.
std::vector<std::vector<Range>> deal_documents(const Mask& mask, int positions);

}  // namespace longca
