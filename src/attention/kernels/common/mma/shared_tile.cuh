#pragma once

#include <cstdint>

#include "attention/kernels/common/mma/instructions.cuh"
#include "attention/kernels/common/mma/params.h"

namespace longca::mma {

/// Rows of one head of a [tokens, heads, dim] tensor in global memory, 16-byte aligned.
template <typename T>
struct HeadRows {
  T* data;                    ///< row 0
  std::int64_t token_stride;  ///< elements
  int tokens;
};

template <typename T>
__device__ __forceinline__ HeadRows<T> head_rows(const TensorArg& tensor, int head, int tokens) {
  return {static_cast<T*>(tensor.data) + head * tensor.head_stride, tensor.token_stride, tokens};
}

/// A lane's ldmatrix address for the 16×16 matrix at (0, 0) of a tile.
template <int kDim>
struct MatrixAddress {
  std::uint32_t base;

  /// The address for the matrix at (row, 16 · step); both are constants, row a multiple of 8. The
  /// swizzle is an XOR of three address bits, so that a step costs at most one instruction.
  __device__ __forceinline__ std::uint32_t at(int row, int step) const {
    return (base ^ ((step & 3) << 5)) + (row * kDim * 2 + (step >> 2) * 128);
  }
  /// The same in a tile `bytes` (a multiple of 1024) further.
  __device__ __forceinline__ MatrixAddress operator+(std::uint32_t bytes) const {
    return {base + bytes};
  }
};

/// A tile [rows, kDim] of 16-bit elements in shared memory, 1024-byte aligned. The 16-byte chunks
/// of a row are swizzled by the row index, so that ldmatrix has no bank conflicts.
template <int kDim>
struct SharedTile {
  static constexpr int kChunks = kDim / 8;
  static constexpr int kRowBytes = kDim * 2;
  static_assert(kChunks % 8 == 0);

  std::uint32_t base;

  __device__ __forceinline__ std::uint32_t at(int row, int chunk) const {
    return base + row * kRowBytes + ((chunk ^ (row & 7)) << 4);
  }

  /// ldmatrix addresses from `row` (a multiple of 8) on in the order of an A operand: rows 0–7,
  /// rows 8–15, then both 8 columns further. With .trans, two B operands of 8 columns with k along
  /// rows.
  __device__ __forceinline__ MatrixAddress<kDim> by_rows(int row = 0) const {
    const int lane = threadIdx.x & 31;
    return {at(lane & 15, lane >> 4) + row * kRowBytes};
  }

  /// The same matrices in the order rows 0–7, the same 8 columns further, then rows 8–15: two B
  /// operands of 8 rows with k along columns. With .trans, an A operand with m along columns.
  __device__ __forceinline__ MatrixAddress<kDim> by_columns(int row = 0) const {
    const int lane = threadIdx.x & 31;
    return {at((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1) + row * kRowBytes};
  }

  /// Starts loading rows [first, first + kRows) of `from`, zero-filled beyond its end.
  template <int kRows, int kThreads, typename T>
  __device__ __forceinline__ void load(const HeadRows<const T>& from, int first) const {
    constexpr int kRowsPerPass = kThreads / kChunks;
    static_assert(kRows % kRowsPerPass == 0);
    const int chunk = threadIdx.x % kChunks;
    const int row = threadIdx.x / kChunks;
    const T* source = from.data + (first + row) * from.token_stride + chunk * 8;
    const std::int64_t step = kRowsPerPass * from.token_stride;
#pragma unroll
    for (int r = 0; r < kRows; r += kRowsPerPass, source += step) {
      cp_async(at(row + r, chunk), source, first + row + r < from.tokens);
    }
  }
};

/// Copies rows [row, row + kRows) of a tile to rows [first, first + kRows) of `to`, clipped to its
/// tokens, 16 bytes at a time; `thread` is in [0, kThreads).
template <int kRows, int kThreads, typename T, int kDim>
__device__ __forceinline__ void copy_rows(SharedTile<kDim> tile, const HeadRows<T>& to, int first,
                                          int thread, int row = 0) {
  constexpr int kChunks = SharedTile<kDim>::kChunks;
#pragma unroll
  for (int i = 0; i < kRows * kChunks; i += kThreads) {
    const int r = (i + thread) / kChunks;
    const int chunk = (i + thread) % kChunks;
    if (first + r >= to.tokens) continue;
    uint4 words;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "r"(tile.at(row + r, chunk))
                 : "memory");
    *reinterpret_cast<uint4*>(to.data + (first + r) * to.token_stride + chunk * 8) = words;
  }
}

/// Stores a warp's accumulators [16 rows, kDim], times the factor of row lane / 4 or lane / 4 + 8,
/// as T to rows [first, first + 16) of `to` through rows [row, row + 16) of `tile`, which no other
/// warp may use meanwhile.
template <typename T, int kDim>
__device__ __forceinline__ void store_rows(const float (&x)[kDim / 8][4], float factor_low,
                                           float factor_high, SharedTile<kDim> tile, int row,
                                           const HeadRows<T>& to, int first) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
    const std::uint32_t low = tile.at(row + lane / 4, n) + (lane % 4) * 4;
    const std::uint32_t high = tile.at(row + lane / 4 + 8, n) + (lane % 4) * 4;
    store_shared(low, pack<T>(x[n][0] * factor_low, x[n][1] * factor_low));
    store_shared(high, pack<T>(x[n][2] * factor_high, x[n][3] * factor_high));
  }
  __syncwarp();
  copy_rows<16, 32>(tile, to, first, lane, row);
  __syncwarp();
}

}  // namespace longca::mma
