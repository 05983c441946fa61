#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// The token axis of a square mask without block lists in its smallest parts that nothing is seen
/// across: no query at or behind a part's begin sees a key before it, and none before it a key at
/// or behind it. Ascending, together all tokens; packed documents come out as one part each,
/// whatever made the mask. Where there is but one such part, slices that reach over more than half
/// of the tokens are left out and the parts of the others are given: many see those cells' keys
/// wherever the tokens are assigned to, as a question that all documents share.
///
/// Parts of fewer than `least` tokens are joined with the next; so are neighbouring tokens that see
/// nothing but themselves.
std::vector<Range> mask_atoms(const Mask& mask, std::int64_t least);

}  // namespace longca
