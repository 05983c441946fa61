// The SIMD loops of MicroKernels; included once per Highway target. The `Words` policy multiplies
// two words into a float32 sum and converts results to words.
#if defined(LONGCA_CPU_INNER_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LONGCA_CPU_INNER_LOOPS_INL_H_
#undef LONGCA_CPU_INNER_LOOPS_INL_H_
#else
#define LONGCA_CPU_INNER_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/micro_kernels.h"
#include "attention/cpu/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace longca::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// At most 16 lanes, so that whole vectors make up a panel.
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
inline constexpr int kPanelVectors = kPanelKeys / kLanes;
/// The register block of accumulators: 4 rows × 2 vectors with 16 registers, 8 × 2 with 32.
inline constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64;
inline constexpr int kBlockRows = kManyRegisters ? 8 : 4;
inline constexpr int kBlockVectors = 2;
static_assert(kPanelVectors % kBlockVectors == 0);
static_assert(std::endian::native == std::endian::little, "bits of masks are read as bytes");

// Loops over rows or vectors of a block are fully unrolled to keep accumulators in registers.
#ifndef LONGCA_UNROLL
#if HWY_COMPILER_CLANG
#define LONGCA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LONGCA_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

/// Steps that are summed one after the other: longer sums are sums of such, since the error of a
/// chain of additions grows with its length.
inline constexpr std::int64_t kChainSteps = 128;

/// One register block over `steps` of the reduction, added to C if `add`. kUnitRows: A has a_row =
/// 1, else a_step = 1.
template <class Words, bool kUnitRows>
HWY_INLINE void product_block(const Product& x, std::int64_t steps, bool add,
                              const Word* HWY_RESTRICT a, const Word* HWY_RESTRICT b,
                              float* HWY_RESTRICT c) {
  const D d;
  V sums[kBlockRows][kBlockVectors];
  const Word* rows[kBlockRows];
  LONGCA_UNROLL for (int i = 0; i < kBlockRows; ++i) {
    rows[i] = a + i * x.a_row;
    LONGCA_UNROLL for (int j = 0; j < kBlockVectors; ++j) sums[i][j] = hn::Zero(d);
  }
  for (std::int64_t k = 0; k < steps; ++k) {
    V right[kBlockVectors];
    LONGCA_UNROLL for (int j = 0; j < kBlockVectors; ++j) right[j] = hn::LoadU(d, b + j * kLanes);
    LONGCA_UNROLL for (int i = 0; i < kBlockRows; ++i) {
      const V left = hn::Set(d, kUnitRows ? a[i] : rows[i][k]);
      LONGCA_UNROLL for (int j = 0; j < kBlockVectors; ++j) {
        sums[i][j] = Words::multiply_add(left, right[j], sums[i][j]);
      }
    }
    if constexpr (kUnitRows) a += x.a_step;
    b += x.b_step;
  }
  LONGCA_UNROLL for (int i = 0; i < kBlockRows; ++i) {
    LONGCA_UNROLL for (int j = 0; j < kBlockVectors; ++j) {
      float* const out = c + i * x.c_row + j * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, out), sums[i][j]) : sums[i][j], d, out);
    }
  }
}

template <class Words, bool kUnitRows>
HWY_INLINE void product_panels(const Product& x) {
  for (int panel = 0; panel < x.panels; ++panel) {
    for (int column = 0; column < kPanelKeys; column += kBlockVectors * kLanes) {
      for (int row = 0; row < kGroupRows; row += kBlockRows) {
        const Word* a = x.a + row * x.a_row;
        const Word* b = x.b + panel * x.b_panel + column;
        float* c = x.c + row * x.c_row + panel * kPanelKeys + column;
        std::int64_t first = 0;
        do {
          product_block<Words, kUnitRows>(x, std::min(kChainSteps, x.steps - first),
                                          x.add || first > 0, a + first * x.a_step,
                                          b + first * x.b_step, c);
        } while ((first += kChainSteps) < x.steps);
      }
    }
  }
}

template <class Words>
void product(const Product& x) {
  if (x.a_row == 1) {
    product_panels<Words, true>(x);
  } else {
    product_panels<Words, false>(x);
  }
}

/// The mask of vector `v` of a panel from one row's 32 bits.
HWY_INLINE hn::Mask<D> allowed_lanes(std::uint32_t bits, int v) {
  const std::uint32_t lanes = bits >> (v * kLanes);
  return hn::LoadMaskBits(D(), reinterpret_cast<const std::uint8_t*>(&lanes));
}

/// Row max without a key.
inline constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// Row max of row i over the panels; −∞ without a key.
HWY_INLINE float row_max(const SoftmaxStep& x, int i) {
  const D d;
  const V lowest = hn::Set(d, kLowest);
  V largest[kBlockVectors] = {lowest, lowest};
  for (int n = 0; n < x.panels.count; ++n) {
    const ScorePanel& score_panel = x.panels.data[n];
    const float* s = x.scores + i * kScoreStride + score_panel.column;
    LONGCA_UNROLL for (int v = 0; v < kPanelVectors; ++v) {
      V score = hn::LoadU(d, s + v * kLanes);
      if (score_panel.bits)
        score = hn::IfThenElse(allowed_lanes(score_panel.bits[i], v), score, lowest);
      largest[v % kBlockVectors] = hn::Max(largest[v % kBlockVectors], score);
    }
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(largest[0], largest[1])));
}

/// Whether row i has a NaN among its allowed scores.
HWY_INLINE bool has_nan(const SoftmaxStep& x, int i) {
  const D d;
  for (int n = 0; n < x.panels.count; ++n) {
    const ScorePanel& score_panel = x.panels.data[n];
    const float* s = x.scores + i * kScoreStride + score_panel.column;
    for (int v = 0; v < kPanelVectors; ++v) {
      auto nan = hn::IsNaN(hn::LoadU(d, s + v * kLanes));
      if (score_panel.bits) nan = hn::And(nan, allowed_lanes(score_panel.bits[i], v));
      if (!hn::AllFalse(d, nan)) return true;
    }
  }
  return false;
}

/// Writes the weights exp2(scale · (s − max)) of row i, 0 where not allowed, and returns their sum.
/// The weight of the max is exactly 1, so that O of a row with one key is its V.
template <class Words>
HWY_INLINE float row_weights(const SoftmaxStep& x, int i, float max) {
  const D d;
  const V scale = hn::Set(d, x.scale_log2);
  const V most = hn::Set(d, max);
  V sum[kBlockVectors] = {hn::Zero(d), hn::Zero(d)};
  for (int n = 0; n < x.panels.count; ++n) {
    const ScorePanel& score_panel = x.panels.data[n];
    const float* s = x.scores + i * kScoreStride + score_panel.column;
    V weights[kPanelVectors];
    LONGCA_UNROLL for (int v = 0; v < kPanelVectors; ++v) {
      weights[v] = exp2(d, hn::Mul(hn::Sub(hn::LoadU(d, s + v * kLanes), most), scale));
      if (score_panel.bits)
        weights[v] = hn::IfThenElseZero(allowed_lanes(score_panel.bits[i], v), weights[v]);
      sum[v % kBlockVectors] = hn::Add(sum[v % kBlockVectors], weights[v]);
    }
    Words::store_row(weights, x.weights, i, score_panel.column);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum[0], sum[1])));
}

template <class Words>
HWY_INLINE void clear_row(const SoftmaxStep& x, int i) {
  const V zeros[kPanelVectors] = {};
  for (int n = 0; n < x.panels.count; ++n) {
    Words::store_row(zeros, x.weights, i, x.panels.data[n].column);
  }
}

template <class Words>
void softmax(const SoftmaxStep& x) {
  const D d;
  SoftmaxState& state = *x.state;
  alignas(64) float max[kGroupRows + 16];
  for (int i = 0; i < kGroupRows; ++i) {
    const float largest = row_max(x, i);
    max[i] = largest > state.max[i] ? largest : state.max[i];
    // A row of nothing but NaN has no largest score, and is not to look like one without a key.
    if (max[i] == kLowest && has_nan(x, i)) max[i] = std::numeric_limits<float>::quiet_NaN();
  }
  for (int i = 0; i < kGroupRows; ++i) {
    state.alpha[i] = 1.0F;
    if (max[i] == kLowest) {  // still without a key
      clear_row<Words>(x, i);
      continue;
    }
    const float sum = row_weights<Words>(x, i, max[i]);
    if (max[i] != state.max[i]) {
      state.alpha[i] = hn::GetLane(exp2(d, hn::Set(d, (state.max[i] - max[i]) * x.scale_log2)));
    }
    state.sum[i] = state.sum[i] * state.alpha[i] + sum;
    state.max[i] = max[i];
  }
}

inline void cap(const CapStep& x) {
  const D d;
  const V factor = hn::Set(d, x.factor);
  for (int n = 0; n < x.panels.count; ++n) {
    for (int i = 0; i < kGroupRows; ++i) {
      float* s = x.scores + i * kScoreStride + x.panels.data[n].column;
      LONGCA_UNROLL for (int v = 0; v < kPanelVectors; ++v) {
        hn::StoreU(tanh(d, hn::Mul(hn::LoadU(d, s + v * kLanes), factor)), d, s + v * kLanes);
      }
    }
  }
}

/// P and dS of one row of a panel.
struct GradientRow {
  V p[kPanelVectors];
  V ds[kPanelVectors];
};

template <bool kCapped>
HWY_INLINE void gradient_row(const GradientStep& x, const ScorePanel& score_panel, int i,
                             GradientRow& row) {
  const D d;
  const V scale = hn::Set(d, x.scale_log2);
  const V offset = hn::Set(d, -x.lse_log2[i]);
  const V delta = hn::Set(d, x.delta[i]);
  const std::int64_t at = i * kScoreStride + score_panel.column;
  LONGCA_UNROLL for (int v = 0; v < kPanelVectors; ++v) {
    const V score = hn::LoadU(d, x.scores + at + v * kLanes);
    row.p[v] = exp2(d, hn::MulAdd(score, scale, offset));
    if (score_panel.bits)
      row.p[v] = hn::IfThenElseZero(allowed_lanes(score_panel.bits[i], v), row.p[v]);
    row.ds[v] = hn::Mul(row.p[v], hn::Sub(hn::LoadU(d, x.grads + at + v * kLanes), delta));
    if constexpr (kCapped) {
      row.ds[v] = hn::Mul(row.ds[v], hn::NegMulAdd(score, score, hn::Set(d, 1.0F)));
    }
  }
}

template <class Words, bool kCapped>
HWY_INLINE void gradient_panels(const GradientStep& x) {
  for (int n = 0; n < x.panels.count; ++n) {
    const ScorePanel& score_panel = x.panels.data[n];
    for (int i = 0; i < kGroupRows; i += 2) {
      GradientRow even, odd;
      gradient_row<kCapped>(x, score_panel, i, even);
      gradient_row<kCapped>(x, score_panel, i + 1, odd);
      Words::store_gradient(even, odd, x, i, score_panel.column);
    }
  }
}

template <class Words>
void gradient(const GradientStep& x) {
  if (x.capped) {
    gradient_panels<Words, true>(x);
  } else {
    gradient_panels<Words, false>(x);
  }
}

#if HWY_TARGET == HWY_SCALAR
inline constexpr bool kHasSquares = false;
HWY_INLINE void transpose_square(const Word*, std::int64_t, Word*) {}
#else
inline constexpr bool kHasSquares = true;
/// 4 rows × 4 words.
HWY_INLINE void transpose_square(const Word* rows, std::int64_t stride, Word* out) {
  const hn::FixedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto row0 = hn::LoadU(d, rows), row1 = hn::LoadU(d, rows + stride);
  const auto row2 = hn::LoadU(d, rows + 2 * stride), row3 = hn::LoadU(d, rows + 3 * stride);
  const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, row0, row1));
  const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, row0, row1));
  const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, row2, row3));
  const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, row2, row3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, out + kPanelKeys);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, out + 2 * kPanelKeys);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, out + 3 * kPanelKeys);
}
#endif

/// By squares of 4 × 4 words, the remaining steps by words.
inline void transpose(const Transpose& x) {
  const std::int64_t squares = kHasSquares ? x.steps / 4 * 4 : 0;
  for (std::int64_t j = 0; j < kPanelKeys; j += 4) {
    const Word* rows = x.rows + j * x.row_stride;
    for (std::int64_t k = 0; k < squares; k += 4) {
      transpose_square(rows + k, x.row_stride, x.out + k * kPanelKeys + j);
    }
    for (std::int64_t k = squares; k < x.steps; ++k) {
      for (std::int64_t i = 0; i < 4; ++i) {
        hwy::CopyBytes<sizeof(Word)>(rows + i * x.row_stride + k, x.out + k * kPanelKeys + j + i);
      }
    }
  }
}

template <class Words>
void dots(const Dots& x) {
  const D d;
  V sums[kPanelVectors];
  LONGCA_UNROLL for (V& sum : sums) sum = hn::Zero(d);
  for (std::int64_t k = 0; k < x.steps; ++k) {
    LONGCA_UNROLL for (int v = 0; v < kPanelVectors; ++v) {
      const std::int64_t at = k * kPanelKeys + v * kLanes;
      sums[v] = Words::multiply_add(hn::LoadU(d, x.a + at), hn::LoadU(d, x.b + at), sums[v]);
    }
  }
  LONGCA_UNROLL for (int v = 0; v < kPanelVectors; ++v) {
    hn::StoreU(sums[v], d, x.out + v * kLanes);
  }
}

inline void rescale(float* o, std::int64_t stride, std::int64_t columns, const float* factors) {
  const D d;
  for (int i = 0; i < kGroupRows; ++i) {
    if (factors[i] == 1.0F) continue;
    const V factor = hn::Set(d, factors[i]);
    for (std::int64_t j = 0; j < columns; j += kLanes) {
      float* at = o + i * stride + j;
      hn::StoreU(hn::Mul(hn::LoadU(d, at), factor), d, at);
    }
  }
}

template <class Words>
MicroKernels make_kernels(bool pairs) {
  return {hwy::TargetName(HWY_TARGET),
          pairs,
          &product<Words>,
          &softmax<Words>,
          &gradient<Words>,
          &cap,
          &transpose,
          &dots<Words>,
          &rescale};
}

}  // namespace
}  // namespace longca::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
