// Compiled without contraction into fused multiply-adds (CMakeLists.txt): the values are part of
// what the program promises.
#include "attention/inputs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/error.h"
#include "core/philox.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

/// Counter word that no mask draws from: masks put a query block, below 2^31, in its place.
constexpr std::uint32_t kInputDomain = 0x80000000U;

template <std::size_t N>
inline float polynomial(const std::array<float, N>& coefficients, float x) {
  float sum = coefficients[0];
  for (std::size_t i = 1; i < N; ++i) sum = sum * x + coefficients[i];
  return sum;
}

/// ln t of a positive normal number: t = 2^e · m with m in [√½, √2), ln m = 2 artanh((m − 1)/(m +
/// 1)).
inline float log_positive(float t) {
  constexpr std::uint32_t kSqrtHalf = 0x3f3504f3U;
  const std::uint32_t offset = std::bit_cast<std::uint32_t>(t) - kSqrtHalf;
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(offset) >> 23);
  const float m = std::bit_cast<float>((offset & 0x007fffffU) + kSqrtHalf);
  const float s = (m - 1.0F) / (m + 1.0F);
  const float s2 = s * s;
  constexpr std::array kSeries = {2.0F / 9, 2.0F / 7, 2.0F / 5, 2.0F / 3, 2.0F};
  return exponent * 0.693147181F + s * polynomial(kSeries, s2);
}

/// The normal quantile of (word + ½)/2^32, word read as signed so that 0 is the median: x · f(w)
/// with x in (−1, 1) and w = −ln(1 − x²), the form of M. Giles, "Approximating the erfinv function"
/// (2010). f was interpolated at Chebyshev nodes: in w below 6, in √w above.
inline float normal_quantile(std::uint32_t word) {
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
  // 1 − x from the integer: the float difference would lose the tails.
  const float rest = (static_cast<float>(0x7fffffff - magnitude) + 0.5F) * kUnit;
  const float w = -log_positive(rest * (2.0F - rest));
  const float centre = polynomial(kCentre, w - 3.0F);
  const float tail = polynomial(kTail, std::sqrt(std::max(w, 0.0F)) - 3.5F);
  const float value = x * (w < 6.0F ? centre : tail);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | (word & 0x80000000U));
}

void store(std::span<const float> values, void* data, std::int64_t first, DType dtype) {
  if (dtype == DType::float32) {
    std::ranges::copy(values, static_cast<float*>(data) + first);
  } else {
    std::ranges::transform(values, static_cast<BFloat16*>(data) + first,
                           [](float value) { return BFloat16(value); });
  }
}

void fill(const TensorView& tensor, std::uint64_t seed, InputTensor id) {
  const std::int64_t elements = tensor.tokens * tensor.heads * tensor.dim;
  const std::int64_t chunks = (elements + kInputChunk - 1) / kInputChunk;
  ThreadPool::global().parallel_for(chunks, [&](std::int64_t chunk, int) {
    std::array<float, kInputChunk> buffer;
    const std::int64_t first = chunk * kInputChunk;
    const auto count = static_cast<std::size_t>(std::min(kInputChunk, elements - first));
    const std::span values = std::span(buffer).first(count);
    draw_normal(seed, id, chunk, values);
    store(values, tensor.data, first, tensor.dtype);
  });
}

}  // namespace

void draw_normal(std::uint64_t seed, InputTensor tensor, std::int64_t chunk,
                 std::span<float> values) {
  LONGCA_CHECK(values.size() <= kInputChunk, "{} values of one chunk", values.size());
  LONGCA_CHECK(chunk >= 0 && chunk < (std::int64_t{1} << 32), "chunk {}", chunk);
  std::array<std::uint32_t, kInputChunk> buffer;
  const std::span words = std::span(buffer).first(values.size());
  philox_fill(static_cast<std::uint32_t>(chunk), kInputDomain + static_cast<std::uint32_t>(tensor),
              philox_key(seed), words);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = normal_quantile(words[i]);
}

Inputs make_inputs(const Problem& problem, std::uint64_t seed) {
  if (problem.dtype != DType::float32 && problem.dtype != DType::bfloat16) {
    throw_input_error("inputs of dtype {} are not offered, only float32 and bfloat16",
                      to_string(problem.dtype));
  }
  const auto tensor = [&](std::int64_t tokens, int heads) {
    return HostTensor(problem.dtype, tokens, heads, problem.head_dim);
  };
  Inputs inputs{
      tensor(problem.tokens_q, problem.heads_q), tensor(problem.tokens_k, problem.heads_k),
      tensor(problem.tokens_k, problem.heads_k), tensor(problem.tokens_q, problem.heads_q)};
  fill(inputs.q.view(), seed, InputTensor::q);
  fill(inputs.k.view(), seed, InputTensor::k);
  fill(inputs.v.view(), seed, InputTensor::v);
  fill(inputs.dout.view(), seed, InputTensor::dout);
  return inputs;
}

}  // namespace longca
