#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "attention/kernels/slice/planner/tile_lists.h"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"

// Online softmax of a thread's part of a 64 × kKeys tile of scores: s[4 n + 2 r + i] is the score
// of row lane / 4 + 8 r of the warp's 16 and column 8 n + 2 (lane % 4) + i. Everything is in the
// log2 domain: scores · softmax scale · log2 e, so that exp2 serves.
namespace longca::slice::sm90 {

/// State of the thread's two rows. Rescaling is lazy: row_max may lie below the true maximum, by
/// `slack` (in log2) at most after online_softmax_masked, by what the row sums allow after
/// online_softmax_unmasked.
struct SoftmaxState {
  float row_max[2] = {-INFINITY, -INFINITY};
  float row_sum[2] = {0, 0};  ///< over this thread's columns only (quad_sum)

  /// What to subtract from scores: 0 for a row that has seen no key, as −∞ − −∞ is NaN.
  __device__ float offset(int r) const { return row_max[r] == -INFINITY ? 0 : row_max[r]; }
};

/// Bit 2 n + i: whether the intervals contain column 8 n + 2 (lane % 4) + i.
__device__ __forceinline__ std::uint32_t column_bits(RowIntervals intervals) {
  const int offset = 2 * static_cast<int>(threadIdx.x & 3);
  const auto from = [offset](std::uint32_t column) {
    const int in_eight = min(max(static_cast<int>(column & 7) - offset, 0), 2);
    return ptx::shift_left(~0u, column / 8 * 2 + static_cast<std::uint32_t>(in_eight));
  };
  return (from(intervals.lo0) & ~from(intervals.hi0)) |
         (from(intervals.lo1) & ~from(intervals.hi1));
}

/// Sets the scores outside of the rows' intervals to −∞; s begins with sub-tile `sub_tile`.
template <int kKeys, int kCount>
__device__ __forceinline__ void mask_scores(float (&s)[kCount], RowIntervals low, RowIntervals high,
                                            int sub_tile = 0) {
  const std::uint32_t low_bits = column_bits(low) >> (kSubTileKeys / 4 * sub_tile);
  const std::uint32_t high_bits = column_bits(high) >> (kSubTileKeys / 4 * sub_tile);
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!(low_bits & (1u << (2 * n + i)))) s[4 * n + i] = -INFINITY;
      if (!(high_bits & (1u << (2 * n + i)))) s[4 * n + 2 + i] = -INFINITY;
    }
  }
}

/// The maximum of row r over this thread's columns of the tile.
template <int kKeys, int kCount>
__device__ __forceinline__ float own_row_max(const float (&s)[kCount], int r) {
  float max = fmaxf(s[2 * r], s[2 * r + 1]);
#pragma unroll
  for (int n = 1; n < kKeys / 8; ++n) {
    max = fmaxf(max, fmaxf(s[4 * n + 2 * r], s[4 * n + 2 * r + 1]));
  }
  return max;
}

/// The maximum over the four threads of a row.
__device__ __forceinline__ float quad_max(float max) {
  max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
  return fmaxf(max, __shfl_xor_sync(~0u, max, 2));
}

inline constexpr float kMaxSlack = 8;

/// Turns scores, which may be −∞, into probabilities. Keeps the old row max until a score of the
/// warp exceeds its row's by `slack` in log2, so that O is seldom rescaled. Returns whether a row
/// max of the warp grew: then row_sum has been multiplied by o_scale[r], and the caller rescales O
/// likewise; else o_scale is not set. With kBounded, a row max is at least `lowest` once a key is
/// seen.
template <int kKeys, bool kBounded, int kCount>
__device__ __forceinline__ bool online_softmax_masked(float (&s)[kCount], SoftmaxState& state,
                                                      float scale_log2, float (&o_scale)[2],
                                                      float lowest, float slack = kMaxSlack) {
  // Of this thread's columns: the vote joins the threads, so that only a row max that grows takes
  // shuffles.
  const float max[2] = {own_row_max<kKeys>(s, 0) * scale_log2,
                        own_row_max<kKeys>(s, 1) * scale_log2};
  // A first finite score exceeds −∞; −∞ − −∞ is NaN, which exceeds nothing.
  const bool grows =
      __any_sync(~0u, max[0] - state.row_max[0] > slack || max[1] - state.row_max[1] > slack);
  if (grows) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float before = state.row_max[r];
      state.row_max[r] = fmaxf(before, quad_max(max[r]));
      if (kBounded && state.row_max[r] != -INFINITY) {
        state.row_max[r] = fmaxf(state.row_max[r], lowest);
      }
      o_scale[r] = ptx::exp2(before - state.offset(r));
      state.row_sum[r] *= o_scale[r];
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float offset = state.offset(r);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& x = s[4 * n + 2 * r + i];
        x = ptx::exp2(fmaf(x, scale_log2, -offset));
        sum += x;
      }
    }
    state.row_sum[r] += sum;
  }
  return grows;
}

/// p = exp2(s) as the A operand of P V, and the row sums over this thread's columns.
template <typename Element, int kCount>
__device__ __forceinline__ void exp2_and_pack(const float (&s)[2 * kCount],
                                              std::uint32_t (&p)[kCount], float (&sum)[2]) {
  sum[0] = sum[1] = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float low = ptx::exp2(s[2 * i]);
    const float high = ptx::exp2(s[2 * i + 1]);
    sum[i % 2] += low;
    sum[i % 2] += high;
    p[i] = ptx::pack<Element>(low, high);
  }
}

/// Up to which sum of a thread's 32 probabilities a tile needs no repair: bfloat16 rounds 2⁶⁰ as it
/// rounds 1, and sums of p and of p · v end at 2¹²⁷; float16 ends at 65504.
template <typename Element>
constexpr float max_tile_sum() {
  return std::is_same_v<Element, __half> ? 0x1p10f : 0x1p60f;
}
/// What a score may exceed its row max by, in log2, where row maxima move as they do without a look
/// at each tile's sums: one more than max_tile_sum of bfloat16 allows, so that no row max moves of
/// which sums do not say it, however these are rounded.
inline constexpr float kCheckedSlack = 61;

/// Whether this thread's sums of a full tile's probabilities ask for another row max.
template <typename Element>
__device__ __forceinline__ bool exceeds(const float (&sum)[2], const SoftmaxState& state) {
  // !(≤) is true for NaN. Row max −∞: all tiles before were masked for the row.
  const auto row_exceeds = [&](int r) {
    return !(sum[r] <= max_tile_sum<Element>()) || state.row_max[r] == -INFINITY;
  };
  return row_exceeds(0) || row_exceeds(1);
}

/// Probabilities of a full tile, which has no −∞; s holds scores − row max (0 if that is −∞). Takes
/// no maximum, a fifth of all instructions: the sums show whether a score is far above its row max.
/// Only then the row max moves and the exponentials are computed again. Returns as
/// online_softmax_masked does.
template <typename Element, int kCount>
__device__ __forceinline__ bool online_softmax_unmasked(float (&s)[2 * kCount],
                                                        std::uint32_t (&p)[kCount],
                                                        SoftmaxState& state, float (&o_scale)[2]) {
  float sum[2];
  exp2_and_pack<Element>(s, p, sum);
  const bool grows = __any_sync(~0u, exceeds<Element>(sum, state));
  if (grows) {
    float step[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float before = state.row_max[r];
      step[r] = quad_max(own_row_max<4 * kCount>(s, r));
      if (before != -INFINITY) step[r] = fmaxf(step[r], 0);
      o_scale[r] = before == -INFINITY ? 0 : ptx::exp2(-step[r]);
      state.row_max[r] = state.offset(r) + step[r];
      state.row_sum[r] *= o_scale[r];
    }
#pragma unroll
    for (int i = 0; i < 2 * kCount; ++i) s[i] -= step[i / 2 % 2];
    exp2_and_pack<Element>(s, p, sum);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) state.row_sum[r] += sum[r];
  return grows;
}

/// With a softcap, scores have bounds, so that the probabilities of a full tile may be computed
/// before its sums are known, for caps up to this, in log2:
/// - bfloat16: a row max is at least lowest_row_max, and no full tile needs another one;
/// - float16, whose range takes a true row max: none is more than twice the cap above it, which
///   leaves finite what online_softmax_computed repairs.
template <typename Element>
constexpr float max_computed_cap_log2() {
  return std::is_same_v<Element, __half> ? 59.0f : 95.0f;
}
/// Probabilities are at most 2⁹⁰ by it, so that 2³⁷ are left for the number of keys and for V. Of a
/// row whose scores are all below it they are at least 2^−100, and 2²⁶ times smaller ones count.
template <typename Element>
__device__ __forceinline__ float lowest_row_max(float cap_log2) {
  const bool bounds =
      !std::is_same_v<Element, __half> && cap_log2 <= max_computed_cap_log2<Element>();
  return bounds ? cap_log2 - 90 : -INFINITY;
}

/// The probabilities s as the A operand of P V, and the row sums over this thread's columns.
template <typename Element, int kCount>
__device__ __forceinline__ void sum_and_pack(const float (&s)[2 * kCount],
                                             std::uint32_t (&p)[kCount], float (&sum)[2]) {
  sum[0] = sum[1] = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    sum[i % 2] += s[2 * i];
    sum[i % 2] += s[2 * i + 1];
    p[i] = ptx::pack<Element>(s[2 * i], s[2 * i + 1]);
  }
}

/// The same, with the sums added to those of the rows.
template <typename Element, int kCount>
__device__ __forceinline__ void sum_and_pack(const float (&s)[2 * kCount],
                                             std::uint32_t (&p)[kCount], SoftmaxState& state) {
  float sum[2];
  sum_and_pack<Element>(s, p, sum);
#pragma unroll
  for (int r = 0; r < 2; ++r) state.row_sum[r] += sum[r];
}

/// As online_softmax_unmasked, of a tile whose s are probabilities already, for caps within
/// max_computed_cap_log2: where a row max moves, these are scaled. In bfloat16 none does, and
/// nothing waits for the sums.
template <typename Element, int kCount>
__device__ __forceinline__ bool online_softmax_computed(float (&s)[2 * kCount],
                                                        std::uint32_t (&p)[kCount],
                                                        SoftmaxState& state, float (&o_scale)[2]) {
  float sum[2];
  sum_and_pack<Element>(s, p, sum);
  const bool grows =
      std::is_same_v<Element, __half> && __any_sync(~0u, exceeds<Element>(sum, state));
  if (grows) {
    float scale[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float before = state.row_max[r];
      float step = log2f(quad_max(own_row_max<4 * kCount>(s, r)));
      if (before != -INFINITY) step = fmaxf(step, 0);
      scale[r] = ptx::exp2(-step);
      o_scale[r] = before == -INFINITY ? 0 : scale[r];
      state.row_max[r] = state.offset(r) + step;
      state.row_sum[r] *= o_scale[r];
    }
#pragma unroll
    for (int i = 0; i < 2 * kCount; ++i) s[i] *= scale[i / 2 % 2];
    sum_and_pack<Element>(s, p, sum);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) state.row_sum[r] += sum[r];
  return grows;
}

/// Multiplies each row of a 64 × kDim accumulator by its factor.
template <int kCount>
__device__ __forceinline__ void rescale_o(float (&o)[kCount], const float (&o_scale)[2]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) o[i] *= o_scale[i / 2 % 2];
}

/// The sum over the four threads of a row.
__device__ __forceinline__ float quad_sum(float sum) {
  sum += __shfl_xor_sync(~0u, sum, 1);
  return sum + __shfl_xor_sync(~0u, sum, 2);
}

}  // namespace longca::slice::sm90
