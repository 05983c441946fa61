#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/adapters/cublas/row_mask.h"
#include "core/tensor.h"

namespace longca::naive {

/// The score matrices of all heads: float32 [heads_q, tokens_q, pitch], of which columns beyond
/// tokens_k are undefined. Weights replace scores in place, in the problem's dtype, from the
/// beginning of each float32 row on.
struct Scores {
  float* data = nullptr;
  std::int64_t heads = 0;
  std::int64_t tokens_q = 0;
  std::int64_t tokens_k = 0;
  std::int64_t pitch = 0;  ///< in float32 elements, a multiple of 8
};

/// What q·k are turned into before the softmax.
struct ScoreRule {
  float scale = 1;
  float softcap = 0;  ///< Problem::softcap
};

/// Scores q·k → softmax weights of `dtype` in place, 0 where masked, and lse. `sink` is
/// ForwardArgs::sink.
void softmax_in_place(const Scores& scores, DType dtype, const DeviceRowMask& mask,
                      const ScoreRule& rule, const float* sink, const LseView& lse,
                      cudaStream_t stream);

/// Scores q·k → weights P, and dP → dS = P ∘ (dP − dO·O) · scale, times the slopes of a softcap,
/// both of `dtype` in place.
void gradients_in_place(const Scores& scores, const Scores& gradients, DType dtype,
                        const DeviceRowMask& mask, const ScoreRule& rule, const ConstTensorView& o,
                        const ConstTensorView& dout, const ConstLseView& lse, cudaStream_t stream);

/// Merges the float32 result (o_new, lse_new) over some keys into (o, lse), that over others.
void merge_results(const TensorView& o, const LseView& lse, const TensorView& o_new,
                   const LseView& lse_new, cudaStream_t stream);

/// float32 → bfloat16 or float16, rounded to nearest.
void round_tensor(const TensorView& from, const TensorView& to, cudaStream_t stream);

}  // namespace longca::naive
