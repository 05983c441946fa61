#pragma once

#include <cuda_runtime_api.h>

#include "attention/adapters/cublas/softmax.h"
#include "core/memory.h"
#include "core/tensor.h"

namespace longca::naive {

/// The batched GEMMs of attention by cuBLAS, for all query heads. bfloat16 and float16 use tensor
/// cores with float32 accumulation; float32 is true float32, not TF32. Query head h uses KV head h
/// · heads_k / heads_q. `added` adds the result to the output.
class Products {
 public:
  Products();

  /// scores[h] = a_h · b_hᵀ, float32; a [tokens_q, heads_q, dim], b [tokens_k, heads_k, dim].
  void scores(const ConstTensorView& a, const ConstTensorView& b, const Scores& out,
              cudaStream_t stream);
  /// out_h = weights[h] · b_h: o from P and v, dq from dS and k.
  void rows(const Scores& weights, const ConstTensorView& b, const TensorView& out, bool added,
            cudaStream_t stream);
  /// out_j = Σ weights[h]ᵀ · a_h over the query heads h of KV head j: dv from P and dout, dk from
  /// dS and q. Accumulates in `out` and its dtype.
  void columns(const Scores& weights, const ConstTensorView& a, const TensorView& out, bool added,
               cudaStream_t stream);

  std::int64_t workspace_bytes() const { return workspace_.bytes(); }

 private:
  struct Matrix;
  struct Product;
  void multiply(const Product& product, cudaStream_t stream);

  Buffer workspace_;  ///< of cuBLAS, allocated here so that it is tracked
};

}  // namespace longca::naive
