// float32 words, compiled once per SIMD target of Highway and dispatched at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/micro_kernels.cpp"
// Scalable vectors cannot be array elements; these CPUs use a fixed-size target instead.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "attention/cpu/inner_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace longca::cpu::HWY_NAMESPACE {
namespace {

struct Float32Words {
  static HWY_INLINE V multiply_add(V a, V b, V sum) { return hn::MulAdd(a, b, sum); }

  static HWY_INLINE void store(const V* values, Word* at) {
    LONGCA_UNROLL for (int v = 0; v < kPanelVectors; ++v)
        hn::StoreU(values[v], D(), at + v * kLanes);
  }
  static HWY_INLINE void store_row(const V* values, Word* words, int i, int column) {
    store(values, words + i * kScoreStride + column);
  }
  static HWY_INLINE void store_gradient(const GradientRow& even, const GradientRow& odd,
                                        const GradientStep& x, int i, int column) {
    const std::int64_t at = i * kScoreStride + column;
    store(even.p, x.p + at);
    store(even.ds, x.ds + at);
    store(odd.p, x.p + at + kScoreStride);
    store(odd.ds, x.ds + at + kScoreStride);
  }
};

const MicroKernels& float32_kernels() {
  static const MicroKernels kernels = make_kernels<Float32Words>(false);
  return kernels;
}

}  // namespace
}  // namespace longca::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace longca::cpu {

HWY_EXPORT(float32_kernels);

const MicroKernels& float32_kernels() {
  return HWY_DYNAMIC_DISPATCH(float32_kernels)();
}

#if LONGCA_CPU_AVX512_BF16
const MicroKernels& avx512_bf16_kernels();  // micro_kernels_bfloat16.cpp

const MicroKernels* bfloat16_kernels() {
  const bool present =
      (hwy::SupportedTargets() & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512bf16") != 0;
  return present ? &avx512_bf16_kernels() : nullptr;
}
#else
const MicroKernels* bfloat16_kernels() {
  return nullptr;
}
#endif

}  // namespace longca::cpu
#endif
