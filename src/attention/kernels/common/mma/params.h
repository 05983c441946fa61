#pragma once

#include "attention/kernels/common/attention_args.h"

namespace longca::mma {

/// The arguments of a backward pass besides AttentionArgs.
struct GradientArgs : GradientTensors {
  float* row_terms = nullptr;  ///< [heads_q, padded rows, 2]: lse · log2 e (+∞ without keys), delta
  /// Float32 sums, zero-initialized: a tile in the layout of Fragments per (head, block). dk_sum
  /// and dv_sum, per KV head, are used if head_parts > 1.
  float* dq_sum = nullptr;
  float* dk_sum = nullptr;
  float* dv_sum = nullptr;
  int tile_n = 0;           ///< keys per tile
  int head_parts = 1;       ///< CTAs that share the query heads of a KV head
  bool accumulate = false;  ///< add to float32 dq, dk and dv
};

}  // namespace longca::mma
