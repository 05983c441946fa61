#pragma once

#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "mask/generators.h"

namespace longca {

/// The mask of `spec` whose blocks are those with the highest scores of these inputs, chosen on the
/// problem's device (select_blocks.h). On a GPU its blocks are in device memory then as well
/// (cuda/block_map.h).
GeneratedMask selected_mask(const MaskSpec& spec, const Problem& problem, const ConstTensorView& q,
                            const ConstTensorView& k);

}  // namespace longca
