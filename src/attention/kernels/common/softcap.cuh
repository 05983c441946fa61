#pragma once

#include "attention/kernels/common/mma/instructions.cuh"
#include "attention/kernels/common/softcap.h"

// A softcap on the accumulators of q·k. Which formula serves is chosen per warp and part of a tile:
// where scores stay far below the cap, a short polynomial.
namespace longca {

enum class CapRange { near, middle, far };

/// Products that are capped at a time: squares of more take too many registers.
inline constexpr int kCapPart = 16;

/// The squares of `kCount` products; returns the largest, or NaN.
template <int kCount>
__device__ __forceinline__ float square_products(const float* products, float (&squares)[kCount]) {
  // As integers the maximum of three is one instruction on sm_90, and NaN is above all others.
  int largest = 0;
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    squares[i] = products[i] * products[i];
    squares[i + 1] = products[i + 1] * products[i + 1];
    largest = __vimax3_s32(largest, __float_as_int(squares[i]), __float_as_int(squares[i + 1]));
  }
  return __int_as_float(largest);
}

/// The squares of `kCount` products plus Softcap::shift; returns the lowest of them as
/// unsigned integers, in which negative numbers descend towards 0, with the positive ones and NaN
/// below them all: that of the product farthest from 0.
template <int kCount>
__device__ __forceinline__ unsigned shift_squares(const float* products, const Softcap& cap,
                                                  float (&shifted)[kCount]) {
  unsigned bits[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    shifted[i] = fmaf(products[i], products[i], cap.shift);
    bits[i] = __float_as_uint(shifted[i]);
  }
  // From the first on: with a constant to begin with, ptxas serializes wgmma of a kernel (C7511).
  unsigned lowest = bits[0];
#pragma unroll
  for (int i = 1; i + 1 < kCount; i += 2) lowest = __vimin3_u32(lowest, bits[i], bits[i + 1]);
  return min(lowest, bits[kCount - 1]);
}

/// factors[0] + factors[1] · x + …
template <int kTerms>
__device__ __forceinline__ float evaluate(const float (&factors)[kTerms], float x) {
  float value = factors[kTerms - 1];
#pragma unroll
  for (int i = kTerms - 2; i >= 0; --i) value = fmaf(value, x, factors[i]);
  return value;
}

/// 1 / (1 + exp 2x), h: tanh x is 1 − 2 h, and its slope 4 h (1 − h).
__device__ __forceinline__ float half_of_far(float product, const Softcap& cap) {
  float half;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(half) : "f"(1 + mma::exp2_fast(product * cap.exponent)));
  return half;
}

/// A product in kRange (of any with `far`) to its capped score in the log2 domain, less `offset`;
/// `shifted` is its square plus Softcap::shift.
template <CapRange kRange>
__device__ __forceinline__ float capped_score(float product, float shifted, const Softcap& cap,
                                              float offset) {
  if constexpr (kRange == CapRange::near) {
    return fmaf(product * fmaf(shifted, shifted, cap.near.rest), cap.near.factor, -offset);
  }
  const float of_small = fmaf(product, evaluate(cap.middle.score, shifted), -offset);
  if constexpr (kRange == CapRange::middle) return of_small;
  const float of_large = fmaf(fmaf(-2.0f, half_of_far(product, cap), 1.0f), cap.cap_log2, -offset);
  return product * product <= cap.middle.reach ? of_small : of_large;
}

/// The same and its slope; near ones by Softcap::Brief.
struct ScoreAndSlope {
  float score;
  float slope;
};
template <CapRange kRange>
__device__ __forceinline__ ScoreAndSlope capped_score_and_slope(float product, float square,
                                                                const Softcap& cap, float offset) {
  if constexpr (kRange == CapRange::near) {
    return {fmaf(product, evaluate(cap.brief.score, square), -offset),
            evaluate(cap.brief.slope, square)};
  }
  float tanh = product * cap.slope * fmaf(evaluate(cap.middle.tanh, square), square, 1.0f);
  float slope = fmaf(-tanh, tanh, 1.0f);
  if constexpr (kRange == CapRange::far) {
    const float half = half_of_far(product, cap);
    if (!(square <= cap.middle.reach)) {
      tanh = fmaf(-2.0f, half, 1.0f);
      slope = 4 * half * (1 - half);
    }
  }
  return {fmaf(tanh, cap.cap_log2, -offset), slope};
}

/// Calls f.template operator()<range>() for the range that all products of the warp are in, given
/// which of them each lane's products are in. NaN is far, and stays NaN.
template <typename F>
__device__ __forceinline__ void with_range(bool near, bool middle, F f) {
  if (__all_sync(~0u, near)) {
    f.template operator()<CapRange::near>();
  } else if (__all_sync(~0u, middle)) {
    f.template operator()<CapRange::middle>();
  } else {
    f.template operator()<CapRange::far>();
  }
}

/// Calls f(shifted) as with_range, where `shifted` are the squares of kCapPart products plus
/// Softcap::shift.
template <typename F>
__device__ __forceinline__ void with_score_range(const float* products, const Softcap& cap, F f) {
  float shifted[kCapPart];
  const unsigned lowest = shift_squares(products, cap, shifted);
  with_range(lowest >= cap.near.reach_bits, lowest >= cap.middle.reach_bits,
             [&]<CapRange kRange>() { f.template operator()<kRange>(shifted); });
}

/// Products to capped scores in the log2 domain.
template <int kCount>
__device__ __forceinline__ void cap_scores(float* s, const Softcap& cap) {
  static_assert(kCount % kCapPart == 0);
#pragma unroll
  for (int first = 0; first < kCount; first += kCapPart) {
    with_score_range(s + first, cap, [&]<CapRange kRange>(const float(&shifted)[kCapPart]) {
#pragma unroll
      for (int i = 0; i < kCapPart; ++i) {
        s[first + i] = capped_score<kRange>(s[first + i], shifted[i], cap, 0);
      }
    });
  }
}

}  // namespace longca
