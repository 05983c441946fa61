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

/// Compares tiles of `x` [tokens, heads, dim] with `reference` [head_count, tokens, dim] for these
/// heads. Tokens whose bit in the tile's TileStatistics::seen is 0 must be exactly 0.
struct DifferenceArgs {
  ConstTensorView x;
  const float* reference = nullptr;
  const TileStatistics* statistics = nullptr;  ///< [head_count, all tiles]
  const int* heads = nullptr;                  ///< [head_count]
  int head_count = 0;
  const std::int32_t* tiles = nullptr;  ///< [count]: the tiles to compare
  int count = 0;
  TileDifference* differences = nullptr;  ///< [head_count, count]
};

void find_differences(const DifferenceArgs& args, cudaStream_t stream);

}  // namespace longca
