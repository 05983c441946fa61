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

/// The range that all products of the warp are in. NaN counts for nothing and stays NaN in each.
template <int kCount>
__device__ __forceinline__ CapRange cap_range(const float* products, const Softcap& cap) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) largest = fmaxf(largest, fabsf(products[i]));
  if (__all_sync(~0u, largest <= cap.near.reach)) return CapRange::near;
  return __all_sync(~0u, largest <= cap.middle.reach) ? CapRange::middle : CapRange::far;
}

/// tanh(x) / x of a product within the polynomial's reach.
template <int kTerms>
__device__ __forceinline__ float tanh_over_x(float product,
                                             const Softcap::Polynomial<kTerms>& polynomial) {
  const float square = product * product;
  float p = polynomial.factors[kTerms - 1];
#pragma unroll
  for (int i = kTerms - 2; i >= 0; --i) p = fmaf(p, square, polynomial.factors[i]);
  return fmaf(p, square, 1.0f);
}

/// tanh of a product in kRange; of any with `far`.
template <CapRange kRange>
__device__ __forceinline__ Tanh tanh_of(float product, const Softcap& cap) {
  const float x = product * cap.slope;
  const float small = kRange == CapRange::near ? x * tanh_over_x(product, cap.near)
                                               : x * tanh_over_x(product, cap.middle);
  const Tanh of_small = {small, fmaf(-small, small, 1.0f)};
  if constexpr (kRange != CapRange::far) return of_small;
  const float half = reciprocal_approximate(1 + mma::exp2_fast(product * cap.exponent));
  const Tanh of_large = {fmaf(-2.0f, half, 1.0f), 4 * half * (1 - half)};
  return fabsf(product) <= cap.middle.reach ? of_small : of_large;
}

/// A product to its capped score in the log2 domain, less `offset`.
template <CapRange kRange>
__device__ __forceinline__ float capped_score(float product, const Softcap& cap, float offset) {
  if constexpr (kRange == CapRange::near) {
    return fmaf(product * cap.scale_log2, tanh_over_x(product, cap.near), -offset);
  } else if constexpr (kRange == CapRange::middle) {
    return fmaf(product * cap.scale_log2, tanh_over_x(product, cap.middle), -offset);
  }
  return fmaf(tanh_of<kRange>(product, cap).value, cap.cap_log2, -offset);
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
