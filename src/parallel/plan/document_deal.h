#pragma once

#include <vector>

#include "mask/mask.h"
#include "parallel/plan/deal_aim.h"

namespace longca {

/// Packed documents dealt to positions so that these end together and few keys and few rows of a
/// document are apart: as many tokens to each position (±1), and documents (mask_atoms) whole where
/// they fit.
///
/// Several deals are made (part_dealer.h), from ones that overfill positions for the sake of whole
/// documents to ones that cut early; over up to 8 positions the most promising are evened out
/// (time_evening.h). Of those with areas within 2 % of the mean, or within kMostDrift where few
/// positions are to take equal time, the cheapest is taken (deal_cost.h), of others the most equal.
///
/// Per position: ascending, not touching. Empty where `deal_balanced` serves as well: a mask
/// without a place to cut, block lists, one position, fewer tokens than positions, and where its
/// areas are clearly more equal or its deal costs less.
std::vector<std::vector<Range>> deal_documents(const Mask& mask, int positions, DealAim aim);

}  // namespace longca
