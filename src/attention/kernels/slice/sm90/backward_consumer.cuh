#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_args.h"
#include "attention/kernels/slice/sm90/backward_key_writer.cuh"
#include "attention/kernels/slice/sm90/backward_shape.cuh"
#include "attention/kernels/slice/sm90/backward_sums.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/tile_products.cuh"
#include "attention/kernels/slice/sm90/ptx/tma.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"

namespace longca::slice::sm90 {

/// Steps of 16 along the inner dimension, in units of 16 bytes: within a column of 64 elements it
/// lies along the rows.
template <int kColumnBytes>
__device__ __forceinline__ constexpr std::uint64_t along(int step) {
  return static_cast<std::uint64_t>((step / 4 * kColumnBytes + step % 4 * 32) / 16);
}
/// Across the rows.
__device__ __forceinline__ constexpr std::uint64_t across(int step) {
  return static_cast<std::uint64_t>(step * 16 * 128 / 16);
}

/// A warpgroup of the two, with 64 of the 128 keys.
template <typename Shape>
struct BackwardConsumer {
  using T = typename Shape::T;
  using Shared = typename Shape::Shared;
  static constexpr int kDim = Shape::kDim;
  static constexpr int kDqCount = kDim / 4;  ///< numbers of dQ per thread: half of its columns

  const BackwardArgs& args;
  Shared& shared;
  int group;  ///< of the two
  int warp;   ///< of the four in the group
  int lane;
  RingPlace<Shape::kStages> ring{};
  RingPlace<2> ds_ring{};
  RingPlace<Shape::kDqBuffers> dq_ring{};
  std::uint32_t keys_parity = 0;

  __device__ __forceinline__ void arrive(std::uint64_t& barrier) const {
    if (lane == 0) ptx::barrier_arrive(&barrier);
  }

  /// s = K Qᵀ or V dOᵀ: this group's 64 keys × 64 rows.
  __device__ __forceinline__ void multiply_rows(float (&s)[32], const unsigned char* keys,
                                                const unsigned char* rows) const {
    const std::uint64_t a = ptx::operand(ptx::shared_address(keys) + group * 64 * 128, 0);
    const std::uint64_t b = ptx::operand(ptx::shared_address(rows), 0);
    using ptx::Inner;
    ptx::multiply_tile<T, Inner::along, Inner::along, false>(s, a, b);
#pragma unroll
    for (int step = 1; step < kDim / 16; ++step) {
      ptx::multiply_tile<T, Inner::along, Inner::along, true>(
          s, a + along<Shape::kKeyColumnBytes>(step), b + along<Shape::kRowColumnBytes>(step));
    }
  }

  /// sum += aᵀ rows, a being 64 rows × this group's 64 keys.
  __device__ __forceinline__ void add_product(float (&sum)[kDim / 2], const std::uint32_t (&a)[16],
                                              const unsigned char* rows) const {
    const std::uint64_t b = ptx::operand(ptx::shared_address(rows), Shape::kRowColumnBytes);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::multiply_add<T>(sum, a + step * 4, b + across(step));
    }
  }

  /// dq = dS K: 64 rows × this group's half of the dimensions.
  __device__ __forceinline__ void multiply_dq(float (&dq)[kDqCount],
                                              const unsigned char* ds) const {
    using ptx::Inner;
    const int column = group * (kDim / 2);
    const std::uint64_t a = ptx::operand(ptx::shared_address(ds), 0);
    const std::uint64_t b = ptx::operand(
        ptx::shared_address(shared.k) + column / 64 * Shape::kKeyColumnBytes + column % 64 * 2,
        Shape::kKeyColumnBytes);
    ptx::multiply_tile<T, Inner::across, Inner::across, false>(dq, a, b);
#pragma unroll
    for (int step = 1; step < kTileKeys / 16; ++step) {
      ptx::multiply_tile<T, Inner::across, Inner::across, true>(dq, a + across(step),
                                                                b + across(step));
    }
  }

  /// 0 for the cells that the pattern does not allow.
  __device__ __forceinline__ void mask(float (&p)[32]) const {
    const int key = group * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint64_t word = shared.pattern[key + half * 8] >> (2 * (lane % 4));
      const auto low = static_cast<std::uint32_t>(word);
      const auto high = static_cast<std::uint32_t>(word >> 32);
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        if (i / 2 % 2 != half) continue;
        const int bit = i / 4 * 8 + i % 2;
        const bool allowed = ((bit < 32 ? low : high) >> (bit % 32) & 1) != 0;
        p[i] = allowed ? p[i] : 0.0f;
      }
    }
  }

  /// dSᵀ into shared memory, for both groups.
  __device__ __forceinline__ void store_ds(unsigned char* ds, const std::uint32_t (&a)[16]) const {
    const int row = lane % 8;
    const int key = group * 64 + warp * 16 + (lane / 8 & 1) * 8 + row;
    const std::uint32_t first = ptx::shared_address(ds) + key * 128 + ((lane / 16) ^ row) * 16;
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::store_matrices(first ^ (step * 32), a[step * 4], a[step * 4 + 1], a[step * 4 + 2],
                          a[step * 4 + 3]);
    }
  }

  /// By way of shared memory and a BackwardAdder.
  __device__ __forceinline__ void add_dq(const float (&dq)[kDqCount], const RowTile& tile) {
    ptx::barrier_wait(&shared.dq_empty[dq_ring.slot], dq_ring.parity ^ 1);
    float* staged = shared.dq[dq_ring.slot][group * 4 + warp];
#pragma unroll
    for (int i = 0; i < kDqCount; i += 4) {
      *reinterpret_cast<float4*>(staged + i * 32 + lane * 4) =
          make_float4(dq[i], dq[i + 1], dq[i + 2], dq[i + 3]);
    }
    ptx::fence_async_proxy();
    give_to_adder(tile);
  }

  __device__ __forceinline__ void give_to_adder(const RowTile& tile) {
    if (group == 0 && warp == 0 && lane == 0) shared.dq_tile[dq_ring.slot] = tile;
    __syncwarp();
    arrive(shared.dq_full[dq_ring.slot]);
    dq_ring.advance();
  }
  __device__ __forceinline__ void dismiss_adders() {
    for (int i = 0; i < Shape::kDqBuffers; ++i) {
      ptx::barrier_wait(&shared.dq_empty[dq_ring.slot], dq_ring.parity ^ 1);
      give_to_adder({-1, 0, 0});
    }
  }

  __device__ __forceinline__ void run() {
    const BackwardKeyWriter<Shape> writer{args, shared, group, warp, lane};
    for (;;) {
      ptx::barrier_wait(&shared.keys_full, keys_parity);
      keys_parity ^= 1;
      const KeyWork work = shared.work;
      if (work.q_tiles < 0) break;
      float dk[kDim / 2];
      float dv[kDim / 2];
#pragma unroll
      for (int i = 0; i < kDim / 2; ++i) dk[i] = dv[i] = 0;
      if (work.q_tiles > 0) walk(work.q_tiles, dk, dv);
      writer.write(work, dk, dv);
      // Only what goes by way of shared memory must be there before K and V come again.
      if (writer.uses_shared(work)) ptx::fence_async_proxy();
      __syncwarp();
      arrive(shared.keys_empty);
    }
    dismiss_adders();
  }

  /// The buffer that was written before the next one.
  __device__ __forceinline__ void wait_ds_before() {
    const std::uint32_t parity = ds_ring.slot == 1 ? ds_ring.parity : ds_ring.parity ^ 1;
    ptx::barrier_wait(&shared.ds_full[ds_ring.slot ^ 1], parity);
  }
  __device__ __forceinline__ void add_dq_before(const float (&dq)[kDqCount], const RowTile& tile) {
    arrive(shared.ds_empty[ds_ring.slot ^ 1]);
    add_dq(dq, tile);
  }

  /// Sums over `count` query tiles.
  __device__ __forceinline__ void walk(int count, float (&dk)[kDim / 2], float (&dv)[kDim / 2]) {
    const float scale_log2 = args.params.scale * kLog2E;
    float s[32];
    ptx::barrier_wait(&shared.q_full[ring.slot], ring.parity);
    ptx::products_begin();
    multiply_rows(s, shared.k, shared.q[ring.slot]);
    ptx::products_commit();
    ptx::products_wait<0>();
    ptx::pin(s);
    RowTile before{-1, 0, 0};
    for (int left = count; left > 0; --left) {
      const int slot = ring.slot;
      const RowTile tile = shared.tile[slot];
      const float* lse = shared.terms[slot][0] + lane % 4 * 2;
      const float* delta = shared.terms[slot][1] + lane % 4 * 2;

      // Scores are under way; their gradient's product beside the exponentials.
      float dp[32];
      ptx::barrier_wait(&shared.dout_full[slot], ring.parity);
      ptx::products_begin();
      multiply_rows(dp, shared.v, shared.dout[slot]);
      ptx::products_commit();
#pragma unroll
      for (int i = 0; i < 32; i += 4) {
        const float2 of_rows = *reinterpret_cast<const float2*>(lse + i * 2);
        s[i] = ptx::exp2(fmaf(s[i], scale_log2, -of_rows.x));
        s[i + 1] = ptx::exp2(fmaf(s[i + 1], scale_log2, -of_rows.y));
        s[i + 2] = ptx::exp2(fmaf(s[i + 2], scale_log2, -of_rows.x));
        s[i + 3] = ptx::exp2(fmaf(s[i + 3], scale_log2, -of_rows.y));
      }
      if (tile.pattern >= 0) {
        mask(s);
        __syncwarp();
        arrive(shared.pattern_empty);
      }
      std::uint32_t p[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) p[i] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);

      // dV beside the gradient of the scores.
      ptx::products_begin();
      add_product(dv, p, shared.dout[slot]);
      ptx::products_commit();
      ptx::products_wait<1>();
      ptx::pin(dp);
#pragma unroll
      for (int i = 0; i < 32; i += 4) {
        const float2 of_rows = *reinterpret_cast<const float2*>(delta + i * 2);
        dp[i] = s[i] * (dp[i] - of_rows.x);
        dp[i + 1] = s[i + 1] * (dp[i + 1] - of_rows.y);
        dp[i + 2] = s[i + 2] * (dp[i + 2] - of_rows.x);
        dp[i + 3] = s[i + 3] * (dp[i + 3] - of_rows.y);
      }
      std::uint32_t ds[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) ds[i] = ptx::pack<T>(dp[2 * i], dp[2 * i + 1]);
      ptx::barrier_wait(&shared.ds_empty[ds_ring.slot], ds_ring.parity ^ 1);
      store_ds(shared.ds[ds_ring.slot], ds);
      ptx::fence_async_proxy();
      __syncwarp();
      arrive(shared.ds_full[ds_ring.slot]);

      ptx::products_begin();
      add_product(dk, ds, shared.q[slot]);
      ptx::products_commit();
      ring.advance();
      // After the last tile this takes whatever is there, for nothing: cheaper than a branch that
      // keeps products apart.
      if (left > 1) ptx::barrier_wait(&shared.q_full[ring.slot], ring.parity);
      ptx::products_begin();
      multiply_rows(s, shared.k, shared.q[ring.slot]);
      ptx::products_commit();
      ptx::products_wait<1>();
      arrive(shared.dout_empty[slot]);
      arrive(shared.q_empty[slot]);

      // dQ of the tile before: by now the other group has written its half of that dS. Of the first
      // tile there is none before: what comes out of it is left.
      float dq[kDqCount];
      if (before.index >= 0) wait_ds_before();
      ptx::products_begin();
      multiply_dq(dq, shared.ds[ds_ring.slot ^ 1]);
      ptx::products_commit();
      ptx::products_wait<0>();
      ptx::pin(s);
      ptx::pin(dq);
      if (before.index >= 0) add_dq_before(dq, before);
      before = tile;
      ds_ring.advance();
    }
    float dq[kDqCount];
    wait_ds_before();
    ptx::products_begin();
    multiply_dq(dq, shared.ds[ds_ring.slot ^ 1]);
    ptx::products_commit();
    ptx::products_wait<0>();
    ptx::pin(dq);
    add_dq_before(dq, before);
    ptx::pin(dk);
    ptx::pin(dv);
  }
};

}  // namespace longca::slice::sm90
