#pragma once

#include <cstdint>

#include "attention/kernels/block_sparse_fa2/band.h"
#include "attention/kernels/common/mma/params.h"

namespace longca::fa2_sparse {

using namespace mma;  // NOLINT(google-build-using-namespace): what the kernels are made of

/// A pass's view of the mask; pointers are device memory.
struct BlockArgs {
  /// [lists, list_rows, row_words] bits (attention/kernels/common/block_map.h): per query block the
  /// kept key blocks (forward), or per key block the query blocks that keep it (backward).
  const std::uint32_t* words;
  int lists;  ///< query head h of H uses list h · lists / H
  int list_rows;
  int row_words;
  int q_block, k_block;  ///< tokens of a block
  Band band;
  /// What CTA i does, longest first: head unit · tiles + tile. A unit is kHeads query heads
  /// (forward) or one of head_parts of a KV head (backward).
  const std::int32_t* order;

#ifdef __CUDACC__
  /// The bits of one row of the list of a query head.
  __device__ __forceinline__ const std::uint32_t* row_of(int head, int heads_q, int row) const {
    const int list = static_cast<int>(static_cast<std::int64_t>(head) * lists / heads_q);
    return words + (static_cast<std::int64_t>(list) * list_rows + row) * row_words;
  }
#endif
};

/// Whether bit `block` of a row is set.
#ifdef __CUDACC__
__device__ __forceinline__ bool has_bit(const std::uint32_t* row, int block) {
  return (row[block / 32] >> (block % 32) & 1) != 0;
}
#endif

struct ForwardParams : AttentionArgs, BlockArgs {};

struct BackwardParams : AttentionArgs, GradientArgs, BlockArgs {
  /// Query heads of a unit that share their list: all of them, or 1.
  int heads_per_list;
};

}  // namespace longca::fa2_sparse
