#pragma once

#include <cstdint>

#include "attention/kernels/common/mma/params.h"
#include "attention/kernels/flashmask/column_tiles.h"

namespace longca::flashmask {

using namespace mma;  // NOLINT(google-build-using-namespace): what the kernels are made of

/// The mask, as both passes take it; pointers are device memory.
struct MaskArgs {
  const Column* columns;      ///< padded to whole key blocks
  const BlockBounds* bounds;  ///< per key block
  const std::int32_t* order;  ///< row blocks (forward) or key blocks (backward), longest first
  int section_heads;  ///< heads whose blocks are interleaved: their keys stay in L2 together
};

struct ForwardParams : AttentionArgs, MaskArgs {};

struct BackwardParams : AttentionArgs, GradientArgs, MaskArgs {};

}  // namespace longca::flashmask
