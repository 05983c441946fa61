#pragma once

#include <cstdint>

namespace longca::mma {

/// A [tokens, heads, dim] tensor of 16-bit elements; strides in elements.
struct TensorArg {
  void* data;
  std::int64_t token_stride;
  std::int64_t head_stride;
};

/// The problem, as both passes of a kernel take it; pointers are device memory.
struct AttentionArgs {
  TensorArg q, k, v, o;
  float* lse;  ///< [heads_q, tokens_q], natural logarithm
  std::int64_t lse_head_stride;
  int tokens_q, tokens_k;
  int heads_q, heads_k;
  float scale;
};

/// What a backward pass takes besides.
struct GradientArgs {
  TensorArg dout, dq, dk, dv;
  float* row_terms;  ///< [heads_q, padded rows, 2]: lse · log2 e (+∞ without keys), delta
  /// Sums in float32, zeros before: per head and block a tile in the order of fragments
  /// (fragments.cuh). dk_sum and dv_sum, per KV head, are used if head_parts > 1.
  float* dq_sum;
  float* dk_sum;
  float* dv_sum;
  int tile_n;               ///< keys of a block
  int head_parts;           ///< CTAs among which the query heads of a KV head are split
  bool accumulate = false;  ///< dq, dk and dv are of float32 and are added to
};

}  // namespace longca::mma
