#pragma once

#include <iosfwd>

#include "mask/generators.h"

namespace longca {

/// Writes a mask as the one-line JSON object of `longca mask --json` and of `mask.json` in dumps:
///   {"mask","tokens","seed","lengths":[…],"prefix","window",
///    "slices":[[q_begin,q_end,k_begin,k_end,"full|causal|inverse_causal|bi_causal"]…],
///    "area","density"}
/// `area` counts the allowed cells of one query head (the mean over heads where they differ) and
/// `density` is its share of tokens². What a mask has none of is null. Masks with block lists
/// write, instead of slices, "blocks" (per list of heads, per query block, the kept key blocks),
/// "q_bounds" and "k_bounds", before them "block_causal":true where later keys are out of sight in
/// kept blocks too. `spec` is what `generated` was made from. Streams: no copy of the
/// mask is made.
void write_mask_json(std::ostream& out, const GeneratedMask& generated, const MaskSpec& spec);

}  // namespace longca
