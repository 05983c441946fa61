#pragma once

#include "attention/kernels/common/mma/instructions.cuh"
#include "attention/kernels/common/softcap.h"

// A softcap on the accumulators of q·k. Which formula serves is chosen per warp and tile: where
// scores stay far below the cap, a short polynomial.
namespace longca {

enum class CapRange { near, middle, far };

/// tanh x and its slope 1 − tanh², with which gradients pass.
struct Tanh {
  float value;
  float slope;
};

__device__ __forceinline__ float reciprocal_approximate(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The range that all products of the warp are in; near ones reach up to `near`. NaN counts for
/// nothing and stays NaN in each. The maximum takes `kChains` registers, and at least 4 cycles for
/// each product of a chain.
template <int kCount, int kChains>
__device__ __forceinline__ CapRange cap_range(const float* products, float near,
                                              const Softcap& cap) {
  float chains[kChains] = {};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    chains[i % kChains] = fmaxf(chains[i % kChains], fabsf(products[i]));
  }
  float largest = chains[0];
#pragma unroll
  for (int i = 1; i < kChains; ++i) largest = fmaxf(largest, chains[i]);
  if (__all_sync(~0u, largest <= near)) return CapRange::near;
  return __all_sync(~0u, largest <= cap.middle.reach) ? CapRange::middle : CapRange::far;
}

/// A polynomial of a product's square.
template <int kTerms>
__device__ __forceinline__ float evaluate(const float (&factors)[kTerms], float square) {
  float value = factors[kTerms - 1];
#pragma unroll
  for (int i = kTerms - 2; i >= 0; --i) value = fmaf(value, square, factors[i]);
  return value;
}

/// 1 / (1 + exp 2x), h: tanh x is 1 − 2 h, and its slope 4 h (1 − h).
__device__ __forceinline__ float half_of_far(float product, const Softcap& cap) {
  return reciprocal_approximate(1 + mma::exp2_fast(product * cap.exponent));
}

/// tanh of a product in kRange; of any with `far`.
template <CapRange kRange>
__device__ __forceinline__ Tanh tanh_of(float product, const Softcap& cap) {
  const float x = product * cap.slope;
  const float square = product * product;
  const float more = kRange == CapRange::near ? evaluate(cap.near.tanh, square)
                                              : evaluate(cap.middle.tanh, square);
  const float small = x * fmaf(more, square, 1.0f);
  const Tanh of_small = {small, fmaf(-small, small, 1.0f)};
  if constexpr (kRange != CapRange::far) return of_small;
  const float half = half_of_far(product, cap);
  const Tanh of_large = {fmaf(-2.0f, half, 1.0f), 4 * half * (1 - half)};
  return fabsf(product) <= cap.middle.reach ? of_small : of_large;
}

/// The capped score of a product in kRange (any with `far`) in the log2 domain, less `offset`, and
/// its slope; near ones by Softcap::Brief.
struct ScoreAndSlope {
  float score;
  float slope;
};
template <CapRange kRange>
__device__ __forceinline__ ScoreAndSlope score_and_slope(float product, const Softcap& cap,
                                                         float offset) {
  if constexpr (kRange == CapRange::near) {
    const float square = product * product;
    return {fmaf(product, evaluate(cap.brief.score, square), -offset),
            evaluate(cap.brief.slope, square)};
  }
  const Tanh tanh = tanh_of<kRange>(product, cap);
  return {fmaf(tanh.value, cap.cap_log2, -offset), tanh.slope};
}

/// A product in kRange (any with `far`) to its capped score in the log2 domain, less `offset`.
template <CapRange kRange>
__device__ __forceinline__ float capped_score(float product, const Softcap& cap, float offset) {
  const float square = product * product;
  if constexpr (kRange == CapRange::near) {
    return fmaf(product, evaluate(cap.near.score, square), -offset);
  }
  const float of_small = fmaf(product, evaluate(cap.middle.score, square), -offset);
  if constexpr (kRange == CapRange::middle) return of_small;
  const float of_large = fmaf(fmaf(-2.0f, half_of_far(product, cap), 1.0f), cap.cap_log2, -offset);
  return fabsf(product) <= cap.middle.reach ? of_small : of_large;
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
  with_range(cap_range<kCount, 4>(s, cap.near.reach, cap), [&]<CapRange kRange>() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) s[i] = capped_score<kRange>(s[i], cap, offset_of(i));
  });
}
template <int kCount>
__device__ __forceinline__ void cap_scores(float* s, const Softcap& cap) {
  cap_scores<kCount>(s, cap, [](int) { return 0.0f; });
}

}  // namespace longca
