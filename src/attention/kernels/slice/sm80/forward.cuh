#pragma once

#include <cstdint>

#include "attention/kernels/common/mma/forward_tile.cuh"
#include "attention/kernels/common/sink.cuh"
#include "attention/kernels/common/softcap.cuh"
#include "attention/kernels/slice/sm80/sub_tile_walk.cuh"
#include "mask/list_of_head.h"

// The forward pass on mma.sync, for GPUs of compute capability 8.0 and later. Two warps compute a
// row group; keys are visited one 64-key sub-tile at a time, so that a group skips what it does not
// see.
namespace longca::slice::sm80 {

/// Tiles of 128 rows × 64 keys, four warps of 32 rows, two stages of K and V.
template <typename Element, int kDim>
using Shape = mma::ForwardShape<Element, kDim, kRowGroups * kGroupRows, kSubTileKeys, 4, 2>;

/// The rows of a tensor that a query tile contains: row r is token r / P, head r % P.
template <typename T>
struct PackedRows {
  T* data;  ///< row 0
  std::int64_t token_stride, head_stride;
  int pack_shift;
  int rows;  ///< that exist

  __device__ __forceinline__ T* at(int row) const {
    return data + (row >> pack_shift) * token_stride +
           (row & ((1 << pack_shift) - 1)) * head_stride;
  }
};

template <typename T>
__device__ __forceinline__ PackedRows<T> packed_rows(const TensorArg& tensor, int head,
                                                     const QueryTile& tile, int pack_shift) {
  return {static_cast<T*>(tensor.data) + head * tensor.head_stride +
              tile.row_begin * tensor.token_stride,
          tensor.token_stride, tensor.head_stride, pack_shift,
          (tile.row_end - tile.row_begin) << pack_shift};
}

/// Loads Q of a query tile by cp.async; rows that do not exist become zeros.
template <typename Shape, typename T>
__device__ __forceinline__ void load_rows(mma::SharedTile<Shape::kDim> tile,
                                          const PackedRows<const T>& from) {
  constexpr int kChunks = mma::SharedTile<Shape::kDim>::kChunks;
  const int chunk = threadIdx.x % kChunks;
#pragma unroll
  for (int r = threadIdx.x / kChunks; r < Shape::kTileM; r += Shape::kThreads / kChunks) {
    const bool exists = r < from.rows;
    mma::cp_async(tile.at(r, chunk), from.at(exists ? r : 0) + chunk * 8, exists);
  }
}

__device__ __forceinline__ uint4 load_shared(std::uint32_t from) {
  uint4 words;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(from)
               : "memory");
  return words;
}

/// Stores a warp's accumulators [16 rows, kDim], times `low` and `high` (rows lane / 4 and
/// lane / 4 + 8), to rows [row, row + 16) of `to`: through the same rows of `tile`, which no other
/// warp touches.
template <typename T, int kDim>
__device__ __forceinline__ void store_rows(const float (&x)[kDim / 8][4], float low, float high,
                                           mma::SharedTile<kDim> tile, int row,
                                           const PackedRows<T>& to) {
  constexpr int kChunks = mma::SharedTile<kDim>::kChunks;
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
    const std::uint32_t place = (lane % 4) * 4;
    mma::store_shared(tile.at(row + lane / 4, n) + place,
                      mma::pack<T>(x[n][0] * low, x[n][1] * low));
    mma::store_shared(tile.at(row + lane / 4 + 8, n) + place,
                      mma::pack<T>(x[n][2] * high, x[n][3] * high));
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * kChunks; i += 32) {
    const int r = row + i / kChunks;
    const int chunk = i % kChunks;
    if (r < to.rows) {
      *reinterpret_cast<uint4*>(to.at(r) + chunk * 8) = load_shared(tile.at(r, chunk));
    }
  }
}

/// Merges a warp's accumulators [16 rows, kDim] into rows [row, row + 16) of the float32 `to` and
/// their LSE, which hold the result over other keys; `results` are of rows lane / 4 and
/// lane / 4 + 8. Rows that saw neither key nor sink are left as they are.
template <int kDim, typename LseOf>
__device__ __forceinline__ void merge_rows(const float (&x)[kDim / 8][4],
                                           const mma::RowResult (&results)[2], int row,
                                           const PackedRows<float>& to, LseOf lse_of) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int high = 0; high < 2; ++high) {
    const int r = row + lane / 4 + 8 * high;
    const float here = results[high].lse;
    const bool sees =
        r < to.rows && here != -INFINITY;  // true for NaN, which is to reach the result
    const float before = sees ? *lse_of(r) : 0;
    __syncwarp();  // all four lanes of the row have read it
    if (!sees) continue;
    const float merged = fmaxf(here, before) + log1pf(expf(-fabsf(here - before)));
    if (lane % 4 == 0) *lse_of(r) = merged;
    const float keep = expf(before - merged);
    const float factor = expf(here - merged) * results[high].factor;
    auto* out = reinterpret_cast<float2*>(to.at(r)) + lane % 4;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      float2 sums = {0, 0};
      if (before != -INFINITY) sums = out[4 * n];  // else O may hold anything
      out[4 * n] = make_float2(fmaf(sums.x, keep, x[n][2 * high] * factor),
                               fmaf(sums.y, keep, x[n][2 * high + 1] * factor));
    }
  }
}

/// Columns [begin, end) of a sub-tile as bits, cut to [0, 64).
__device__ __forceinline__ std::uint64_t column_bits(int begin, int end) {
  begin = max(begin, 0);
  end = min(end, kSubTileKeys);
  if (begin >= end) return 0;
  return (~std::uint64_t{0} >> (kSubTileKeys - (end - begin))) << begin;
}

/// Sets the scores of cells that a row does not see to −∞. `rows`: the intervals of rows lane / 4
/// and lane / 4 + 8 over the key tile's 128 columns, of which the sub-tile begins at first_column.
__device__ __forceinline__ void mask_scores(float (&s)[kSubTileKeys / 8][4],
                                            const RowIntervals (&rows)[2], int first_column) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const RowIntervals row = rows[half];
    const std::uint64_t bits = (column_bits(row.lo0 - first_column, row.hi0 - first_column) |
                                column_bits(row.lo1 - first_column, row.hi1 - first_column)) >>
                               (threadIdx.x % 4 * 2);
#pragma unroll
    for (int n = 0; n < kSubTileKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if ((bits >> (n * 8 + i) & 1) == 0) s[n][2 * half + i] = -INFINITY;
      }
    }
  }
}

/// What a CTA computes. Head blocks come in sections, and the longest tiles of all head blocks of a
/// section first.
struct QueryTileWork {
  int head_block;
  int tile;  ///< index of DeviceTileLists::tiles

  __device__ __forceinline__ static QueryTileWork of(const ForwardParams& params,
                                                     int section_blocks, int index) {
    const DeviceTileLists& lists = params.lists;
    const int head_blocks = params.heads_q / lists.pack;
    const int section = index / (lists.tiles_per_list * section_blocks);
    const int rest = index - section * lists.tiles_per_list * section_blocks;
    const int width = min(section_blocks, head_blocks - section * section_blocks);
    const int head_block = section * section_blocks + rest % width;
    const int list =
        static_cast<int>(list_of_head(std::int64_t{head_block}, lists.list_heads, head_blocks));
    return {head_block, list * lists.tiles_per_list + rest / width};
  }
};

/// One CTA per query tile and head block. All its warps load every sub-tile; a warp whose row group
/// does not see it computes nothing.
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kCtasPerSm)
    forward_kernel(const ForwardParams params, int section_blocks) {
  using T = typename Shape::T;
  using Tile = mma::SharedTile<Shape::kDim>;
  constexpr int kStages = Shape::kStages;
  constexpr std::uint32_t kStageBytes = sizeof(Shape::Tiles::k[0]);
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<typename Shape::Tiles*>(shared_bytes);

  const QueryTileWork work =
      QueryTileWork::of(params, section_blocks, static_cast<int>(blockIdx.x));
  const QueryTile tile = params.lists.tiles[work.tile];
  const int pack = params.lists.pack;
  const int pack_shift = __ffs(pack) - 1;
  const int head = work.head_block * pack;
  const int kv_head = head / (params.heads_q / params.heads_k);
  const int warp_row = static_cast<int>(threadIdx.x / 32) * (Shape::kTileM / 4);
  const int group = warp_row / kGroupRows;

  const Tile q_tile{mma::shared_address(shared.q)};
  load_rows<Shape>(q_tile, packed_rows<const T>(params.q, head, tile, pack_shift));
  const auto head_rows = [&](const TensorArg& tensor) {
    return mma::HeadRows<const T>{static_cast<const T*>(tensor.data) + kv_head * tensor.head_stride,
                                  tensor.token_stride, params.tokens_k};
  };
  const auto k = head_rows(params.k);
  const auto v = head_rows(params.v);
  const Tile k_tile{mma::shared_address(shared.k)};
  const Tile v_tile{mma::shared_address(shared.v)};
  const auto q_matrices = q_tile.by_rows(warp_row);
  const auto k_matrices = k_tile.by_columns();
  const auto v_matrices = v_tile.by_rows();

  SubTileWalk walk(params.lists, tile, group);
  const int count = walk.left();
  const auto load = [&](int i) {
    const SubTile sub_tile = walk.next();
    const std::uint32_t stage = i % kStages * kStageBytes;
    Tile{k_tile.base + stage}.template load<kSubTileKeys, Shape::kThreads>(k, sub_tile.k_begin);
    Tile{v_tile.base + stage}.template load<kSubTileKeys, Shape::kThreads>(v, sub_tile.k_begin);
    return sub_tile;
  };

  float o[Shape::kRowTiles][Shape::kDim / 8][4] = {};
  mma::RowSoftmax softmax[Shape::kRowTiles];
  const bool capped = params.softcap.cap > 0;
  const float scale_log2 = capped ? 1 : params.scale * kLog2E;
  static_assert(kStages == 2, "one sub-tile is loaded ahead");
  SubTile sub_tile = {};
  if (count > 0) sub_tile = load(0);
  mma::cp_async_commit();
  for (int i = 0; i < count; ++i) {
    mma::cp_async_wait<0>();
    __syncthreads();  // sub-tile i has arrived, and nobody reads the stage of i + 1 any more
    SubTile next = {};
    if (i + 1 < count) next = load(i + 1);
    mma::cp_async_commit();
    if (sub_tile.pattern != kNone) {
      const std::uint32_t stage = i % kStages * kStageBytes;
      float s[Shape::kRowTiles][kSubTileKeys / 8][4];
      mma::gemm_qk<Shape>(s, q_matrices, k_matrices + stage);
      if (capped) cap_scores<Shape::kRowTiles * kSubTileKeys / 2>(&s[0][0][0], params.softcap);
      if (sub_tile.pattern != kFull) {
        const RowIntervals* pattern =
            params.lists.patterns +
            (static_cast<std::int64_t>(sub_tile.pattern) * kGroupRows >> pack_shift);
#pragma unroll
        for (int m = 0; m < Shape::kRowTiles; ++m) {
          const int row = warp_row % kGroupRows + m * 16 + threadIdx.x % 32 / 4;
          const RowIntervals rows[2] = {pattern[row >> pack_shift],
                                        pattern[(row + 8) >> pack_shift]};
          mask_scores(s[m], rows, sub_tile.first_column);
        }
      }
#pragma unroll
      for (int m = 0; m < Shape::kRowTiles; ++m) softmax[m].rescale(s[m], o[m], scale_log2);
      mma::gemm_pv<Shape>(o, s, softmax, scale_log2, v_matrices + stage);
    }
    sub_tile = next;
  }
  mma::cp_async_wait_all();
  __syncthreads();  // Q has arrived even if no sub-tile was visited

  const auto out = packed_rows<T>(params.o, head, tile, pack_shift);
  const auto lse_of = [&](int r) {
    return params.lse + (head + (r & (pack - 1))) * params.lse_head_stride + tile.row_begin +
           (r >> pack_shift);
  };
#pragma unroll
  for (int m = 0; m < Shape::kRowTiles; ++m) {
    const float scale = capped ? 1 / kLog2E : params.scale;
    mma::RowResult results[2] = {softmax[m].result(0, scale), softmax[m].result(1, scale)};
    const int row = warp_row + m * 16;
    for (int high = 0; high < 2 && params.sink != nullptr; ++high) {
      const int r = row + static_cast<int>(threadIdx.x % 32 / 4) + 8 * high;
      add_sink(params.sink[head + (r & (pack - 1))], results[high].lse, results[high].factor);
    }
    if (params.accumulate) {
      merge_rows<Shape::kDim>(o[m], results, row,
                              packed_rows<float>(params.o, head, tile, pack_shift), lse_of);
      continue;
    }
    store_rows<T, Shape::kDim>(o[m], results[0].factor, results[1].factor, q_tile, row, out);
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int low = 0; low < 2; ++low) {
      const int r = row + lane / 4 + 8 * low;
      if (lane % 4 == 0 && r < out.rows) *lse_of(r) = results[low].lse;
    }
  }
}

}  // namespace longca::slice::sm80
