#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/reference/cuda/passes.h"
#include "core/tensor.h"

namespace longca {

/// How far one tile of an output is from the reference.
struct TileDifference {
  double squared = 0;            ///< ‖x − ref‖²; NaN if x has one
  double reference_squared = 0;  ///< ‖ref‖²
  double largest = 0;            ///< largest |x − ref|; NaN if x has one
  std::int32_t forbidden = 0;    ///< 1: a token that must be exactly 0 is not
};

/// What is compared: some tiles of `x` against `reference` [slots, tokens, dim] for the heads of
/// the slots. Tokens whose bit of the tile's figures is not set must be exactly 0.
struct DifferenceArgs {
  ConstTensorView x;  ///< float32 or bfloat16
  const float* reference = nullptr;
  const TileFigure* figures = nullptr;  ///< [slots, all tiles]
  const int* heads = nullptr;           ///< [slots]
  int slots = 0;
  const std::int32_t* tiles = nullptr;    ///< those compared
  int count = 0;                          ///< of them
  TileDifference* differences = nullptr;  ///< [slots, count]
};

void find_differences(const DifferenceArgs& args, cudaStream_t stream);

}  // namespace longca
