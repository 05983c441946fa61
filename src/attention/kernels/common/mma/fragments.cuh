#pragma once

#include <cstdint>

#include "attention/kernels/common/mma/instructions.cuh"
#include "attention/kernels/common/mma/shared_tile.cuh"

namespace longca::mma {

/// A float32 tile [kTileRows, kDim] in global memory in the layout of the warps' m16n8
/// accumulators: fragment by fragment, four floats per lane, so that a warp's access is 512
/// consecutive bytes. Warp w owns the kRows × kWidth part at (w % kWarpsDown, w / kWarpsDown).
template <int kDim, int kRows, int kWidth, int kWarpsDown, int kWarpsAcross>
struct Fragments {
  static constexpr int kTileRows = kRows * kWarpsDown;
  static constexpr int kColumns = kWidth / 8;
  static constexpr int kCount = kRows / 16 * kColumns;
  static constexpr int kThreads = kWarpsDown * kWarpsAcross * 32;
  static_assert(kWidth * kWarpsAcross == kDim);

  static __device__ __forceinline__ int row(int warp) { return warp % kWarpsDown * kRows; }
  static __device__ __forceinline__ int column(int warp) { return warp / kWarpsDown * kWidth; }

  /// Index of this lane's floats in its warp's first fragment of tile `tile`; fragments are 128
  /// apart.
  static __device__ __forceinline__ std::int64_t place(std::int64_t tile) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    return tile * (kTileRows * kDim) + warp * (kCount * 128) + (threadIdx.x & 31) * 4;
  }

  static __device__ __forceinline__ void add(float* sums, std::int64_t tile,
                                             const float (&x)[kCount][4]) {
    float* to = sums + place(tile);
#pragma unroll
    for (int f = 0; f < kCount; ++f) add_float4(to + f * 128, x[f]);
  }

  /// add() by TMA on compute capability 9.0 and later: a warp copies its part to shared memory, at
  /// `staged` for the whole tile, and starts the reduction. A warp waits only until TMA has read
  /// its previous part; reductions by the warps' own instructions would stall their other accesses.
  /// Lane 0 of every warp must call bulk_wait before the CTA ends.
  static __device__ __forceinline__ void add_async(float* sums, std::int64_t tile,
                                                   const float (&x)[kCount][4],
                                                   std::uint32_t staged) {
#if __CUDA_ARCH__ >= 900
    const int warp = static_cast<int>(threadIdx.x / 32);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::uint32_t part = staged + warp * (kCount * 512);
    if (lane == 0) bulk_wait_read();
    __syncwarp();
#pragma unroll
    for (int f = 0; f < kCount; ++f) store_shared(part + f * 512 + lane * 16, x[f]);
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) bulk_reduce_add(sums + place(tile), part, kCount * 512);
#else
    add(sums, tile, x);
#endif
  }

  /// Stores a warp's part times `factor` to a shared-memory tile as T.
  template <typename T>
  static __device__ __forceinline__ void stage(const float (&x)[kCount][4], float factor,
                                               SharedTile<kDim> to) {
#pragma unroll
    for (int f = 0; f < kCount; ++f) stage_fragment<T>(x[f], f, factor, to);
  }
  /// The same, from sums in global memory.
  template <typename T>
  static __device__ __forceinline__ void stage(const float* sums, std::int64_t tile, float factor,
                                               SharedTile<kDim> to) {
    const float* from = sums + place(tile);
#pragma unroll
    for (int f = 0; f < kCount; ++f) {
      const float4 x = *reinterpret_cast<const float4*>(from + f * 128);
      stage_fragment<T>({x.x, x.y, x.z, x.w}, f, factor, to);
    }
  }

  /// Adds a warp's part times `factor` to rows [first, to.tokens) of `to`, not atomically.
  static __device__ __forceinline__ void add_to_rows(const float (&x)[kCount][4], float factor,
                                                     const HeadRows<float>& to, int first) {
#pragma unroll
    for (int f = 0; f < kCount; ++f) add_fragment(x[f], f, factor, to, first);
  }
  /// The same, from sums in global memory.
  static __device__ __forceinline__ void add_to_rows(const float* sums, std::int64_t tile,
                                                     float factor, const HeadRows<float>& to,
                                                     int first) {
    const float* from = sums + place(tile);
#pragma unroll
    for (int f = 0; f < kCount; ++f) {
      const float4 x = *reinterpret_cast<const float4*>(from + f * 128);
      add_fragment({x.x, x.y, x.z, x.w}, f, factor, to, first);
    }
  }

 private:
  static __device__ __forceinline__ void add_fragment(const float (&x)[4], int f, float factor,
                                                      const HeadRows<float>& to, int first) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int column_of_lane = column(warp) + f % kColumns * 8 + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = first + row(warp) + f / kColumns * 16 + half * 8 + lane / 4;
      if (r >= to.tokens) continue;
      auto* sum = reinterpret_cast<float2*>(to.data + r * to.token_stride + column_of_lane);
      const float2 before = *sum;
      *sum =
          make_float2(fmaf(x[2 * half], factor, before.x), fmaf(x[2 * half + 1], factor, before.y));
    }
  }

  template <typename T>
  static __device__ __forceinline__ void stage_fragment(const float (&x)[4], int f, float factor,
                                                        SharedTile<kDim> to) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int r = row(warp) + f / kColumns * 16 + lane / 4;
    const int chunk = column(warp) / 8 + f % kColumns;
    store_shared(to.at(r, chunk) + lane % 4 * 4, pack<T>(x[0] * factor, x[1] * factor));
    store_shared(to.at(r + 8, chunk) + lane % 4 * 4, pack<T>(x[2] * factor, x[3] * factor));
  }
};

}  // namespace longca::mma
