#include "fma_peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fma_peak.cpp"
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#ifndef LONGCA_FMA_PEAK_SHARED
#define LONGCA_FMA_PEAK_SHARED
namespace longca {
namespace {
constexpr int kChains = 12;  // independent sums: more than latency × throughput of any CPU so far
}
}  // namespace longca
#endif

HWY_BEFORE_NAMESPACE();
namespace longca::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Runs `steps` multiply-adds on each of kChains vectors; returns their number of float32 lanes,
/// and a value of the sums so that they are computed.
std::pair<std::size_t, float> fma_chains(std::int64_t steps, float factor) {
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<decltype(d)>;
  V sums[kChains];
  for (V& sum : sums) sum = hn::Set(d, factor);
  const V a = hn::Set(d, factor);
  for (std::int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 16
    for (V& sum : sums) sum = hn::MulAdd(a, a, sum);
  }
  V total = sums[0];
  for (int c = 1; c < kChains; ++c) total = hn::Add(total, sums[c]);
  return {hn::Lanes(d), hn::GetLane(hn::SumOfLanes(d, total))};
}

}  // namespace
}  // namespace longca::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#if HWY_ARCH_X86
#include <immintrin.h>
#endif

namespace longca {
namespace {

HWY_EXPORT(fma_chains);

using Chains = std::function<std::pair<std::size_t, float>(std::int64_t steps, float factor)>;

#if HWY_ARCH_X86
__attribute__((target("avx512f,avx512bf16"))) std::pair<std::size_t, float> bf16_dot_chains(
    std::int64_t steps, float factor) {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(factor);
  const auto a = (__m512bh)_mm512_set1_ps(factor);
  for (std::int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, a);
  }
  __m512 total = sums[0];
  for (int c = 1; c < kChains; ++c) total = _mm512_add_ps(total, sums[c]);
  return {2 * 16, _mm512_reduce_add_ps(total)};
}
#endif

double gflops(ThreadPool& pool, const Chains& chains) {
  constexpr std::int64_t kSteps = 2'000'000;
  volatile float factor = 1e-3F;
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    std::size_t lanes = 0;
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(pool.threads(), [&](std::int64_t item, int) {
      const auto [width, sum] = chains(kSteps, factor);
      volatile float keep = sum;
      static_cast<void>(keep);
      if (item == 0) lanes = width;
    });
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    const double flops = 2.0 * static_cast<double>(lanes) * kChains * kSteps * pool.threads();
    best = std::max(best, flops / time.count());
  }
  return best;
}

}  // namespace

FmaPeak measure_fma_peak(ThreadPool& pool) {
  FmaPeak peak;
  peak.float32 = gflops(pool, [](std::int64_t steps, float factor) {
    return HWY_DYNAMIC_DISPATCH(fma_chains)(steps, factor);
  });
#if HWY_ARCH_X86
  if (__builtin_cpu_supports("avx512bf16")) peak.bfloat16 = gflops(pool, bf16_dot_chains);
#endif
  return peak;
}

}  // namespace longca
#endif  // HWY_ONCE
