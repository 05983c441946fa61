#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/reference/cuda/passes.h"
#include "core/tensor.h"

namespace longca {

/// The error of one tile of an output.
struct TileDifference {
  double squared = 0;            ///< ‖x − ref‖²; NaN if x has one
  double reference_squared = 0;  ///< ‖ref‖²
  double largest = 0;            ///< max |x − ref|; NaN if x has one
  std::int32_t forbidden = 0;    ///< 1 if a token that must be exactly 0 is not
};

/// Compares tiles of `x` [tokens, heads, dim] with `reference` [slots, tokens, dim] for the heads
/// of the slots. Tokens whose bit in the tile's TileStatistics::seen is 0 must be exactly 0.
struct DifferenceArgs {
  ConstTensorView x;  ///< float32 or bfloat16
  const float* reference = nullptr;
  const TileStatistics* statistics = nullptr;  ///< [slots, all tiles]
  const int* heads = nullptr;                  ///< [slots]
  int slots = 0;
  const std::int32_t* tiles = nullptr;  ///< [count]: the tiles to compare
  int count = 0;
  TileDifference* differences = nullptr;  ///< [slots, count]
};

void find_differences(const DifferenceArgs& args, cudaStream_t stream);

}  // namespace longca
