#pragma once

#include "attention/kernels/common/attention_args.h"

namespace longca::mma {

/// What a backward pass takes besides AttentionArgs.
struct GradientArgs : GradientTensors {
  float* row_terms = nullptr;  ///< [heads_q, padded rows, 2]: lse · log2 e (+∞ without keys), delta
  /// Sums in float32, zeros before: per head and block a tile in the order of fragments
  /// (fragments.cuh). dk_sum and dv_sum, per KV head, are used if head_parts > 1.
  float* dq_sum = nullptr;
  float* dk_sum = nullptr;
  float* dv_sum = nullptr;
  int tile_n = 0;           ///< keys of a block
  int head_parts = 1;       ///< CTAs among which the query heads of a KV head are split
  bool accumulate = false;  ///< dq, dk and dv are of float32 and are added to
};

}  // namespace longca::mma
