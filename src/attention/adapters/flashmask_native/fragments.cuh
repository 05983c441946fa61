#pragma once

#include <cstdint>

#include "attention/adapters/flashmask_native/mma.cuh"
#include "attention/adapters/flashmask_native/shared_tile.cuh"

namespace longca::flashmask {

/// A float32 tile [kWarpRows · kWarpsDown, kDim] in global memory as warps hold it in accumulators
/// [16, 8]: fragment by fragment, four floats per lane, so that a warp adds 512 consecutive bytes
/// at a time. Warp w owns the kRows × kWidth part number (w % kWarpsDown, w / kWarpsDown).
template <int kDim, int kRows, int kWidth, int kWarpsDown, int kWarpsAcross>
struct Fragments {
  static constexpr int kTileRows = kRows * kWarpsDown;
  static constexpr int kColumns = kWidth / 8;
  static constexpr int kCount = kRows / 16 * kColumns;
  static constexpr int kThreads = kWarpsDown * kWarpsAcross * 32;
  static_assert(kWidth * kWarpsAcross == kDim);

  static __device__ __forceinline__ int row(int warp) { return warp % kWarpsDown * kRows; }
  static __device__ __forceinline__ int column(int warp) { return warp / kWarpsDown * kWidth; }

  /// This lane's floats of its warp's first fragment of tile number `tile`; the next is 128 on.
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

  /// Puts the tile times `factor` into shared memory as T. Called by kThreads threads, which must
  /// meet before it is read.
  template <typename T>
  static __device__ __forceinline__ void stage(const float* sums, std::int64_t tile, float factor,
                                               SharedTile<kDim> to) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const float* from = sums + place(tile);
#pragma unroll
    for (int f = 0; f < kCount; ++f) {
      const float4 x = *reinterpret_cast<const float4*>(from + f * 128);
      const int r = row(warp) + f / kColumns * 16 + lane / 4;
      const int chunk = column(warp) / 8 + f % kColumns;
      store_shared(to.at(r, chunk) + lane % 4 * 4, pack<T>(x.x * factor, x.y * factor));
      store_shared(to.at(r + 8, chunk) + lane % 4 * 4, pack<T>(x.z * factor, x.w * factor));
    }
  }
};

}  // namespace longca::flashmask
