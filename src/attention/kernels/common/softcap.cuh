#pragma once

#include "attention/kernels/common/mma/instructions.cuh"
#include "attention/kernels/common/softcap.h"

// A softcap on the accumulators of q·k. Which formula serves is chosen per warp and tile: where
// scores stay far below the cap, a short polynomial.
namespace longca {

enum class CapRange { near, middle, far };

/// A capped score in the log2 domain, and the slope 1 − tanh², with which gradients pass.
struct CappedScore {
  float score;
  float slope;
};

__device__ __forceinline__ float reciprocal_approximate(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The range that all products of the warp are in. NaN counts for nothing and stays NaN in each.
template <int kCount>
__device__ __forceinline__ CapRange cap_range(const float* products, const Softcap& cap) {
  // Four chains of maxima: a single one takes as long as its latency, 4 cycles a product.
  float largest[4] = {};
#pragma unroll
  for (int i = 0; i < kCount; ++i) largest[i % 4] = fmaxf(largest[i % 4], fabsf(products[i]));
  const float of_all = fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]));
  if (__all_sync(~0u, of_all <= cap.near_reach)) return CapRange::near;
  return __all_sync(~0u, of_all <= cap.middle_reach) ? CapRange::middle : CapRange::far;
}

template <int kTerms>
__device__ __forceinline__ float evaluate(const Softcap::Polynomial<kTerms>& polynomial,
                                          float square) {
  float value = polynomial.factors[kTerms - 1];
#pragma unroll
  for (int i = kTerms - 2; i >= 0; --i) value = fmaf(value, square, polynomial.factors[i]);
  return value;
}

/// 1 / (1 + exp 2x), by which tanh x is 1 − 2 · that, and its slope 4 · that · (1 − that).
__device__ __forceinline__ float half_of_far(float product, const Softcap& cap) {
  return reciprocal_approximate(1 + mma::exp2_fast(product * cap.exponent));
}

/// A product in kRange (any with `far`) to its capped score in the log2 domain, less `offset`.
template <CapRange kRange>
__device__ __forceinline__ float capped_score(float product, const Softcap& cap, float offset) {
  const float square = product * product;
  if constexpr (kRange == CapRange::near) {
    return fmaf(product, evaluate(cap.near, square), -offset);
  }
  const float of_small = fmaf(product, evaluate(cap.middle, square), -offset);
  if constexpr (kRange == CapRange::middle) return of_small;
  const float of_large = fmaf(fmaf(-2.0f, half_of_far(product, cap), 1.0f), cap.cap_log2, -offset);
  return fabsf(product) <= cap.middle_reach ? of_small : of_large;
}

/// The same, with its slope.
template <CapRange kRange>
__device__ __forceinline__ CappedScore capped_with_slope(float product, const Softcap& cap,
                                                         float offset) {
  const float square = product * product;
  if constexpr (kRange == CapRange::near) {
    return {fmaf(product, evaluate(cap.near, square), -offset), evaluate(cap.near_slope, square)};
  }
  const float score = product * evaluate(cap.middle, square);
  const float tanh = score * cap.per_cap_log2;
  const CappedScore of_small = {score - offset, fmaf(-tanh, tanh, 1.0f)};
  if constexpr (kRange == CapRange::middle) return of_small;
  const float half = half_of_far(product, cap);
  const CappedScore of_large = {fmaf(fmaf(-2.0f, half, 1.0f), cap.cap_log2, -offset),
                                4 * half * (1 - half)};
  return fabsf(product) <= cap.middle_reach ? of_small : of_large;
}

/// Calls f.template operator()<range>() for the range of a warp's products.
template <typename F>
__device__ __forceinline__ void with_range(CapRange range, F f) {
  if (range == CapRange::near) {
    f.template operator()<CapRange::near>();
  } else if (range == CapRange::middle) {
    f.template operator()<CapRange::middle>();
  } else {
    f.template operator()<CapRange::far>();
  }
}

/// Products to capped scores in the log2 domain, less offset_of(i).
template <int kCount, typename OffsetOf>
__device__ __forceinline__ void cap_scores(float* s, const Softcap& cap, OffsetOf offset_of) {
  with_range(cap_range<kCount>(s, cap), [&]<CapRange kRange>() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) s[i] = capped_score<kRange>(s[i], cap, offset_of(i));
  });
}
template <int kCount>
__device__ __forceinline__ void cap_scores(float* s, const Softcap& cap) {
  cap_scores<kCount>(s, cap, [](int) { return 0.0f; });
}

}  // namespace longca
