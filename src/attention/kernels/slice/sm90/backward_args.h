#pragma once

#include <cuda.h>

#include <cstdint>

#include "attention/kernels/slice/backward_launch.h"

namespace longca::slice::sm90 {

/// Of the 64 rows of a query tile.
struct RowTerms {
  float lse[kBackwardRows];    ///< in base 2; +∞ for a row that sees nothing or is none
  float delta[kBackwardRows];  ///< sum of dO · O
};

/// What was done to the sums of a query tile's dQ. What comes first stores, so that nobody needs to
/// set them to zero, and what comes meanwhile waits.
inline constexpr std::int32_t kUntouched = 0;
inline constexpr std::int32_t kFirst = 1;  ///< is being stored
inline constexpr std::int32_t kStored = 2;

/// What the kernels of the backward pass are launched with. Tensor maps are over
/// [tokens, heads, dim], their boxes 64 elements wide.
struct BackwardArgs {
  CUtensorMap q, dout;  ///< boxes of P heads × 64 / P tokens
  CUtensorMap k, v;     ///< boxes of 128 keys
  BackwardParams params;
  int pack_shift;     ///< log2 P
  int q_tiles;        ///< of a head block
  int head_blocks;    ///< of a KV head: P query heads each
  int section_heads;  ///< KV heads whose key tiles are interleaved: their rows stay in L2
  int query_tiles;    ///< of all head blocks
  int work_items;
  RowTerms* terms;  ///< of all query tiles
  /// Float32 sums lie as the matrix product leaves them: a warp's part is a run of float4 per lane,
  /// number i of lane l at i / 4 · 128 + 4 l + i % 4, which is row l / 4 + 8 (i / 2 % 2), column
  /// 8 (i / 4) + 2 (l % 4) + i % 2 of the warp's 16 rows. A query tile: 4 warps one below the other
  /// for the first half of the dimensions, then 4 for the second.
  float* dq_sums;
  float* key_sums;  ///< of shared key tiles, dK and dV: 8 warps one below the other
  /// Of each query tile. Ordered: additions that are done; else kUntouched, kFirst or kStored.
  std::int32_t* turns;
  /// Visits of each region of query tiles that are in device memory, if lists.counts_visits.
  std::int32_t* visits;
  std::int64_t key_sum_bytes;
  int shared_sums;  ///< key tiles per KV head that have these
  std::int32_t* work_counter;
  std::int32_t* write_counter;  ///< query tiles and shared keys that a CTA writes, or has
};

}  // namespace longca::slice::sm90
