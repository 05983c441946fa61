#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/tensor.h"

namespace longca {

/// Pooled rows are padded with zeros to a multiple of this many float32.
inline constexpr int kPoolUnit = 32;

/// Means of blocks: out[(list · blocks + block) · pitch + c] for c < pitch, zero from x.dim on.
struct PoolArgs {
  ConstTensorView x;                     ///< float32 or bfloat16, device memory
  const std::int32_t* bounds = nullptr;  ///< [blocks + 1]
  int blocks = 0;
  int lists = 0;  ///< each over x.heads / lists neighbouring heads
  int pitch = 0;  ///< multiple of kPoolUnit
  float* out = nullptr;
};
void launch_pool(const PoolArgs& args, cudaStream_t stream);

/// Scores of some lists' rows as numbers that grow with them: keys[(l · rows + r) · key_pitch + j]
/// for list head_begin + l, query block row_begin + r, key block j, of tiles that are visible to
/// one of their rows.
struct ScoreArgs {
  const float* q = nullptr;  ///< [lists, q_blocks, pitch], pooled
  const float* k = nullptr;  ///< [heads_k, k_blocks, pitch], pooled
  int lists = 0, heads_k = 0;
  int q_blocks = 0, k_blocks = 0, pitch = 0;
  int head_begin = 0, heads = 0;          ///< of this launch
  int row_begin = 0, rows = 0;            ///< of this launch, in each of its heads
  const std::int32_t* visible = nullptr;  ///< [q_blocks], never decreasing
  std::uint32_t* keys = nullptr;          ///< [heads, rows, key_pitch]
  int key_pitch = 0;                      ///< even
};
void launch_scores(const ScoreArgs& args, cudaStream_t stream);

/// The `kept` largest of the first `visible` keys of every row, of equal ones the earlier, as bits.
struct TopArgs {
  const std::uint32_t* keys = nullptr;  ///< as in ScoreArgs
  int key_pitch = 0;
  int q_blocks = 0, k_blocks = 0;
  int head_begin = 0, heads = 0;
  int row_begin = 0, rows = 0;
  const std::int32_t* visible = nullptr;  ///< [q_blocks]
  const std::int32_t* kept = nullptr;     ///< [q_blocks], 1 ≤ kept ≤ visible
  std::uint32_t* words = nullptr;         ///< [lists, q_blocks, row_words], all of a row is written
  int row_words = 0;
};
void launch_top(const TopArgs& args, cudaStream_t stream);

}  // namespace longca
