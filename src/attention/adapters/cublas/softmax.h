#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/adapters/cublas/device_row_mask.h"
#include "core/tensor.h"

namespace longca::naive {

/// The score matrices of all heads: float32 [heads_q, tokens_q, pitch], the first tokens_k of a row
/// in use; what is read of the rest, with the last vector of four, is not looked at. A kernel that
/// turns scores into weights leaves them in the problem's dtype, row by row in the same place: each
/// row then begins with its weights.
struct Scores {
  float* data = nullptr;
  std::int64_t heads = 0;
  std::int64_t tokens_q = 0;
  std::int64_t tokens_k = 0;
  std::int64_t pitch = 0;  ///< in float32 elements, a multiple of 8
};

/// Scores q·k → softmax weights of `dtype` in place, 0 where not allowed, and their lse.
void softmax_in_place(const Scores& scores, DType dtype, const DeviceRowMask& mask, float scale,
                      const LseView& lse, cudaStream_t stream);

/// Scores q·k → weights P, and dP → dS = P ∘ (dP − dO·O) · scale, both of `dtype` in place.
void gradients_in_place(const Scores& scores, const Scores& gradients, DType dtype,
                        const DeviceRowMask& mask, float scale, const ConstTensorView& o,
                        const ConstTensorView& dout, const ConstLseView& lse, cudaStream_t stream);

/// Merges a result (o_new, lse_new), float32, into (o, lse), that over other keys.
void merge_results(const TensorView& o, const LseView& lse, const TensorView& o_new,
                   const LseView& lse_new, cudaStream_t stream);

/// float32 → bfloat16, rounded to nearest.
void round_tensor(const TensorView& from, const TensorView& to, cudaStream_t stream);

}  // namespace longca::naive
