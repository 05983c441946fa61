#pragma once

// The arithmetic of the inputs on host and device. Values are bitwise reproducible, so the only
// files that may include this, inputs.cpp and cuda/inputs.cu, are compiled without contraction to
// fused multiply-adds.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define LONGCA_HOST_DEVICE __host__ __device__
#else
#define LONGCA_HOST_DEVICE
#endif

#include "attention/inputs/inputs.h"
#include "core/device.h"
#include "core/philox.h"
#include "core/tensor.h"

namespace longca {

/// Second word of the Philox counters of the inputs, plus the tensor's number; disjoint from the
/// masks' counters, whose second word is a query block below 2^31.
inline constexpr std::uint32_t kInputDomain = 0x80000000U;

/// Likewise for the topics of clustered inputs and, plus 1, for directions.
inline constexpr std::uint32_t kTopicDomain = 0xc0000000U;
inline constexpr std::int64_t kTopicSigns = 128;  ///< dimensions per Philox counter

/// What a style makes of the normal values n of some rows: factor · n + along · u, where
/// along = shift + slope · (token − origin) and u is a direction of the row's KV head.
struct InputShape {
  std::int64_t heads = 1;
  std::int64_t dim = 1;
  std::int64_t heads_k = 0;  ///< KV heads of the problem; 0 if nothing is added
  float factor = 1;
  float shift = 0;
  float slope = 0;
  std::int64_t origin = 0;
  bool topics = false;  ///< the direction is that of the token's topic, else that of topic 0

  bool is_plain() const { return heads_k == 0 && factor == 1; }
};

/// The signs, a bit each, of a row's direction in dimensions [dimensions · kTopicSigns,
/// (dimensions + 1) · kTopicSigns).
constexpr PhiloxCounter direction_signs(const InputShape& shape, PhiloxKey key, std::int64_t row,
                                        std::int64_t dimensions) {
  const auto head = static_cast<std::uint32_t>(row % shape.heads * shape.heads_k / shape.heads);
  const auto segment = static_cast<std::uint32_t>(row / shape.heads / kTopicTokens);
  const std::uint32_t topic =
      shape.topics ? philox4x32_10({segment, kTopicDomain, head, 0}, key)[0] % kTopics : 0;
  return philox4x32_10({topic, kTopicDomain + 1, head, static_cast<std::uint32_t>(dimensions)},
                       key);
}
/// `along` of a row.
constexpr float along_direction(const InputShape& shape, std::int64_t row) {
  const std::int64_t token = row / shape.heads;
  return shape.shift + shape.slope * static_cast<float>(token - shape.origin);
}
/// The value of dimension `d` of a row, given its direction_signs and along_direction.
constexpr float shaped(float normal, const InputShape& shape, const PhiloxCounter& signs,
                       float along, std::int64_t d) {
  const float value = normal * shape.factor;
  if (shape.heads_k == 0) return value;
  const auto bit = static_cast<std::uint32_t>(d % kTopicSigns);
  return value + ((signs[bit / 32] >> (bit % 32) & 1) != 0 ? -along : along);
}

namespace normal_detail {

template <std::size_t N>
LONGCA_HOST_DEVICE inline float polynomial(const std::array<float, N>& coefficients, float x) {
  float sum = coefficients[0];
  for (std::size_t i = 1; i < N; ++i) sum = sum * x + coefficients[i];
  return sum;
}

/// ln t of a positive normal number: t = 2^e · m with m in [√½, √2), ln m = 2 artanh((m − 1)/(m +
/// 1)).
LONGCA_HOST_DEVICE inline float log_positive(float t) {
  constexpr std::uint32_t kSqrtHalf = 0x3f3504f3U;
  const std::uint32_t offset = std::bit_cast<std::uint32_t>(t) - kSqrtHalf;
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(offset) >> 23);
  const float m = std::bit_cast<float>((offset & 0x007fffffU) + kSqrtHalf);
  const float s = (m - 1.0F) / (m + 1.0F);
  const float s2 = s * s;
  constexpr std::array kSeries = {2.0F / 9, 2.0F / 7, 2.0F / 5, 2.0F / 3, 2.0F};
  return exponent * 0.693147181F + s * polynomial(kSeries, s2);
}

}  // namespace normal_detail

/// The normal quantile of (word + ½)/2^32 with `word` as a signed integer, so that 0 is the median:
/// x · f(w) with x in (−1, 1) and w = −ln(1 − x²) (M. Giles, "Approximating the erfinv function",
/// 2010). f is interpolated at Chebyshev nodes in w below 6 and in √w above.
LONGCA_HOST_DEVICE inline float normal_quantile(std::uint32_t word) {
  constexpr std::array kCentre = {
      -7.751285568e-09F, -5.884826367e-09F, 6.343786221e-07F,  -2.670690887e-06F, -1.797444751e-05F,
      2.764702188e-04F,  -1.182551468e-03F, -8.115623547e-03F, 3.417169968e-01F,  2.296035246e+00F};
  constexpr std::array kTail = {5.719366819e-05F,  -2.874862963e-04F, 6.492300001e-04F,
                                -9.986728275e-04F, 1.538010552e-03F,  -2.905164286e-03F,
                                4.633862678e-03F,  1.424633597e+00F,  4.717089194e+00F};
  constexpr float kUnit = 0x1p-31F;
  const auto n = static_cast<std::int32_t>(word);
  const std::int32_t magnitude = n ^ (n >> 31);
  const float x = (static_cast<float>(magnitude) + 0.5F) * kUnit;
  // 1 − x, computed from the integer to keep the tails accurate.
  const float rest = (static_cast<float>(0x7fffffff - magnitude) + 0.5F) * kUnit;
  const float w = -normal_detail::log_positive(rest * (2.0F - rest));
  const float centre = normal_detail::polynomial(kCentre, w - 3.0F);
  const float tail = normal_detail::polynomial(kTail, std::sqrt(std::max(w, 0.0F)) - 3.5F);
  const float value = x * (w < 6.0F ? centre : tail);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | (word & 0x80000000U));
}

/// Draws elements [first, first + count) of tensor `id` on the GPU, bitwise the
/// values of draw_normal, shaped, rounded as BFloat16(float) and Float16(float) do. Asynchronous.
void cuda_draw(void* to, DType dtype, std::int64_t first, std::int64_t count, std::uint64_t seed,
               InputTensor id, const InputShape& shape, Stream stream);

}  // namespace longca
