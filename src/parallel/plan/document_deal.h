#pragma once

#include <vector>

#include "mask/mask.h"

namespace longca {

/// Packed documents dealt to positions so that few keys and few rows of a document are apart. As
/// many tokens to each position (±1), areas about as equal as `deal_balanced` makes them, whole
/// documents (mask_atoms) where they fit; a long one is cut into as few parts of one area as the
/// areas' balance allows, at multiples of a kernel's tile from its begin. Then the parts are packed
/// for tokens and area at once: longest first to the position that still needs most area beyond
/// what the tokens that it has room for will bring, then swaps; the tokens that still miss come
/// from the shortest documents, the only ones that are cut anywhere.
///
/// Per position: ascending, not touching. Empty where there is nothing to gain: a mask without a
/// place to cut, block lists, one position, fewer tokens than positions, or areas that
/// `deal_balanced` makes clearly more equal.
std::vector<std::vector<Range>> deal_documents(const Mask& mask, int positions);

}  // namespace longca
