#pragma once

#include <cstdint>
#include <limits>

#include "attention/cpu/tile_shape.h"

namespace longca::cpu {

/// 32 bits of an operand: one float32, or a pair of bfloat16 adjacent along the reduction, the
/// first in the low 16 bits, as the CPU's bf16 dot products take them.
using Word = float;

/// C[8, 32·panels] = (add ? C : 0) + A[8, steps] · B[steps, 32·panels]; `steps` counts words.
struct Product {
  const Word* a = nullptr;  ///< A(i, k) = a[i · a_row + k · a_step]; one of the two strides is 1
  std::int64_t a_row = 0;
  std::int64_t a_step = 0;
  const Word* b = nullptr;  ///< B(k, 32·p + j) = b[k · b_step + p · b_panel + j]
  std::int64_t b_step = 0;
  std::int64_t b_panel = 0;
  int panels = 1;
  std::int64_t steps = 0;
  float* c = nullptr;  ///< C(i, 32·p + j) = c[i · c_row + 32·p + j]
  std::int64_t c_row = 0;
  bool add = false;
};

/// The scores of a panel of keys for a group of 8 query rows.
struct ScorePanel {
  std::int32_t column = 0;              ///< first column in the rows of scores
  std::int32_t panel = 0;               ///< index of the panel of packed keys
  const std::uint32_t* bits = nullptr;  ///< [8] masks, bit j for key j; null if the panel is full
};

struct ScorePanels {
  const ScorePanel* data = nullptr;
  int count = 0;
};

/// The running state of the online softmax of one group.
struct SoftmaxState {
  float max[kGroupRows];    ///< running row max of the raw scores; −∞ before the first key
  float sum[kGroupRows];    ///< sum of exp2(scale_log2 · (score − max))
  float alpha[kGroupRows];  ///< the last step's factor for earlier results

  static SoftmaxState without_keys() {
    SoftmaxState state{};
    for (float& max : state.max) max = -std::numeric_limits<float>::infinity();
    return state;
  }
};

/// One step of the online softmax over the rows of one group.
struct SoftmaxStep {
  const float* scores = nullptr;  ///< [8, kScoreStride] raw scores
  Word* weights =
      nullptr;  ///< float32: may alias `scores`; pairs: [8, kScoreStride / 2], key pairs
  ScorePanels panels;
  float scale_log2 = 0;  ///< softmax scale · log2(e), positive
  SoftmaxState* state = nullptr;
};

/// P = exp2(scale_log2 · S − lse_log2), dS = P ∘ (dP − delta), over the rows of one group. If
/// capped, S is a tanh, and dS = P ∘ (dP − delta) ∘ (1 − S²).
struct GradientStep {
  const float* scores = nullptr;  ///< S, [8, kScoreStride]
  const float* grads = nullptr;   ///< dP, likewise
  ScorePanels panels;
  float scale_log2 = 0;
  const float* lse_log2 = nullptr;  ///< [8]
  const float* delta = nullptr;     ///< [8] row sums of dO ∘ O
  /// P and dS as left operands of dV and dK. float32: [8, kScoreStride], may alias `scores` and
  /// `grads`. Pairs: [4, kScoreStride], pairs of query rows.
  Word* p = nullptr;
  Word* ds = nullptr;
  /// Pairs only: dS as the left operand of dQ, [8, kScoreStride / 2], pairs of keys.
  Word* ds_rows = nullptr;
  bool capped = false;
};

/// scores = tanh(factor · scores), in place, over the rows of one group.
struct CapStep {
  float* scores = nullptr;  ///< [8, kScoreStride]
  ScorePanels panels;
  float factor = 0;
};

/// out[k · 32 + j] = rows[j · row_stride + k] for 32 unaligned rows of `steps` words.
struct Transpose {
  const Word* rows = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t steps = 0;
  Word* out = nullptr;
};

/// out[j] = Σ a[k · 32 + j] · b[k · 32 + j] over `steps` words: each sum of the products, and in
/// the order, of a Product with such operands, so that the two are equal to the bit for equal rows.
struct Dots {
  const Word* a = nullptr;
  const Word* b = nullptr;
  std::int64_t steps = 0;
  float* out = nullptr;  ///< [32]
};

/// The inner loops for one SIMD target and one kind of word.
struct MicroKernels {
  const char* name = "";
  bool pairs = false;  ///< words are bfloat16 pairs
  void (*product)(const Product&) = nullptr;
  void (*softmax)(const SoftmaxStep&) = nullptr;
  void (*gradient)(const GradientStep&) = nullptr;
  void (*cap)(const CapStep&) = nullptr;
  void (*transpose)(const Transpose&) = nullptr;
  void (*dots)(const Dots&) = nullptr;
  /// Multiplies row i of o[8, columns] (row stride `stride`) by factors[i]; columns of 32.
  void (*rescale)(float* o, std::int64_t stride, std::int64_t columns,
                  const float* factors) = nullptr;
};

/// float32 words, dispatched to this CPU's best SIMD target.
const MicroKernels& float32_kernels();
/// bfloat16 pairs; null if the CPU or this build has no bf16 dot products.
const MicroKernels* bfloat16_kernels();

}  // namespace longca::cpu
