#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/tensor.h"

namespace longca {

/// Pooled rows are zero-padded to a multiple of this many float32.
inline constexpr int kPoolUnit = 32;

/// Means of blocks: out [lists, blocks, pitch] float32, zero from column x.dim on.
struct PoolArgs {
  ConstTensorView x;                     ///< [tokens, heads, dim], float32 or bfloat16
  const std::int32_t* bounds = nullptr;  ///< [blocks + 1]
  int blocks = 0;
  int lists = 0;  ///< each is the mean over x.heads / lists adjacent heads
  int pitch = 0;  ///< multiple of kPoolUnit
  float* out = nullptr;
};
void launch_pool(const PoolArgs& args, cudaStream_t stream);

/// Scores of some rows as sort keys, monotonic in the score: keys[(l · rows + r) · key_pitch + j]
/// is of list head_begin + l, query block row_begin + r and key block j. Tiles without a visible
/// pair are not written.
struct ScoreArgs {
  const float* q = nullptr;  ///< [lists, q_blocks, pitch], pooled
  const float* k = nullptr;  ///< [heads_k, k_blocks, pitch], pooled
  int lists = 0, heads_k = 0;
  int q_blocks = 0, k_blocks = 0, pitch = 0;
  int head_begin = 0, heads = 0;          ///< lists of this launch
  int row_begin = 0, rows = 0;            ///< query blocks of this launch, per list
  const std::int32_t* visible = nullptr;  ///< [q_blocks], never decreasing
  std::uint32_t* keys = nullptr;          ///< [heads, rows, key_pitch]
  int key_pitch = 0;                      ///< even
};
void launch_scores(const ScoreArgs& args, cudaStream_t stream);

/// The `kept` largest of the first `visible` sort keys of every row as a bitmap; ties go to the
/// earlier key block.
struct TopArgs {
  const std::uint32_t* keys = nullptr;  ///< as in ScoreArgs
  int key_pitch = 0;
  int q_blocks = 0, k_blocks = 0;
  int head_begin = 0, heads = 0;
  int row_begin = 0, rows = 0;
  const std::int32_t* visible = nullptr;  ///< [q_blocks]
  const std::int32_t* kept = nullptr;     ///< [q_blocks], 1 ≤ kept ≤ visible
  std::uint32_t* words = nullptr;         ///< [lists, q_blocks, row_words]; rows are fully written
  int row_words = 0;
};
void launch_top(const TopArgs& args, cudaStream_t stream);

}  // namespace longca
