#pragma once

#include <iosfwd>
#include <string>

#include "mask/generators.h"

namespace longca {

/// Allowed cells of a query head, exactly; where heads differ, their mean.
std::string area_text(const Mask& mask);

/// Writes a mask as the one-line JSON object of `longca mask --json` and of `mask.json` in dumps:
///   {"mask","tokens","seed","lengths":[…],"prefix","window",
///    "slices":[[q_begin,q_end,k_begin,k_end,"full|causal|inverse_causal|bi_causal"]…],
///    "area","density"}
/// `area` is the number of allowed cells of a query head (the mean over heads if they differ),
/// `density` its share of tokens²; absent values are null. Masks with block lists have, instead of
/// "slices", "blocks" (per list, per query block, the kept key blocks), "q_bounds" and "k_bounds",
/// preceded by "block_causal":true if kept blocks are causal. `spec` must be what `generated` was
/// made from.
void write_mask_json(std::ostream& out, const GeneratedMask& generated, const MaskSpec& spec);

}  // namespace longca
