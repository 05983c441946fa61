// bfloat16 pairs by AVX512-BF16, for which Highway 1.0.3 has no target: this file alone is compiled
// with these instructions (CMakeLists.txt), everything in it is local, and it runs only on CPUs
// that have them.
#include <hwy/highway.h>
#include <immintrin.h>

#include "attention/cpu/inner_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace longca::cpu::HWY_NAMESPACE {
namespace {

static_assert(kLanes == 16, "compile this file for AVX-512");

struct BFloat16Pairs {
  static HWY_INLINE V multiply_add(V a, V b, V sum) {
    return V{_mm512_dpbf16_ps(sum.raw, (__m512bh)a.raw, (__m512bh)b.raw)};
  }
  /// Rounds 16 low and 16 high values to 32 bfloat16, in order.
  static HWY_INLINE __m512i round(V low, V high) {
    return (__m512i)_mm512_cvtne2ps_pbh(high.raw, low.raw);
  }

  /// Pairs of adjacent keys of one row.
  static HWY_INLINE void store_row(const V* values, Word* words, int i, int column) {
    _mm512_storeu_si512(words + (i * kScoreStride + column) / 2, round(values[0], values[1]));
  }
  /// Pairs of two rows, one pair per key.
  static HWY_INLINE void store_rows(const V* even, const V* odd, Word* at) {
    const __m512i interleave =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    LONGCA_UNROLL for (int v = 0; v < kPanelVectors; ++v) {
      const __m512i pairs = _mm512_permutexvar_epi16(interleave, round(even[v], odd[v]));
      _mm512_storeu_si512(at + v * kLanes, pairs);
    }
  }
  static HWY_INLINE void store_gradient(const GradientRow& even, const GradientRow& odd,
                                        const GradientStep& x, int i, int column) {
    const std::int64_t at = i / 2 * kScoreStride + column;
    store_rows(even.p, odd.p, x.p + at);
    store_rows(even.ds, odd.ds, x.ds + at);
    store_row(even.ds, x.ds_rows, i, column);
    store_row(odd.ds, x.ds_rows, i + 1, column);
  }
};

}  // namespace
}  // namespace longca::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace longca::cpu {

const MicroKernels& avx512_bf16_kernels() {
  static const MicroKernels kernels =
      HWY_STATIC_DISPATCH(make_kernels)<HWY_STATIC_DISPATCH(BFloat16Pairs)>(true);
  return kernels;
}

}  // namespace longca::cpu
