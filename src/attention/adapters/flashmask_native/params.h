#pragma once

#include <cstdint>

#include "attention/adapters/flashmask_native/column_tiles.h"

namespace longca::flashmask {

/// A [tokens, heads, dim] tensor of 16-bit elements; strides in elements.
struct TensorArg {
  void* data;
  std::int64_t token_stride;
  std::int64_t head_stride;
};

/// The problem and the mask, shared by both passes; pointers are device memory.
struct CommonParams {
  TensorArg q, k, v, o;
  float* lse;  ///< [heads_q, tokens_q], natural logarithm
  std::int64_t lse_head_stride;
  int tokens_q, tokens_k;
  int heads_q, heads_k;
  float scale;
  const Column* columns;      ///< padded to whole key blocks
  const BlockBounds* bounds;  ///< per key block
  const std::int32_t* order;  ///< row blocks (forward) or key blocks (backward), longest first
  int section_heads;  ///< heads whose blocks are interleaved: their keys stay in L2 together
};

struct ForwardParams : CommonParams {};

struct BackwardParams : CommonParams {
  TensorArg dout, dq, dk, dv;
  float* row_terms;  ///< [heads_q, padded rows, 2]: lse · log2 e (+∞ without keys), delta
  /// Sums in float32, zeros before: per head and block a tile in the order of fragments
  /// (fragments.cuh). dk_sum and dv_sum, per KV head, are used if head_parts > 1.
  float* dq_sum;
  float* dk_sum;
  float* dv_sum;
  int tile_n;      ///< keys of a block: backward_tile_n()
  int head_parts;  ///< work groups among which the query heads of a KV head are split
};

}  // namespace longca::flashmask
