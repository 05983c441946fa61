#pragma once

#include <cstdint>
#include <limits>

#include "attention/cpu/tile_shape.h"

namespace longca::cpu {

/// 32 bits of an operand: one float32, or two bfloat16 that are neighbours along the reduction (the
/// first in the low half), as the CPU's bf16 dot products read them.
using Word = float;

/// C[8, 32·panels] = A[8, steps] · B[steps, 32·panels], added to C if `add`. Steps count words.
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

/// A panel of keys that a group of 8 query rows sees at least a part of.
struct Slot {
  std::int32_t column = 0;              ///< where the panel's scores stand in the rows of scores
  std::int32_t panel = 0;               ///< which panel of packed keys
  const std::uint32_t* bits = nullptr;  ///< per row the allowed keys, lowest bit first; null: all
};

struct Slots {
  const Slot* data = nullptr;
  int count = 0;
};

/// The running state of the online softmax of one group, in units of log2.
struct SoftmaxState {
  float max[kGroupRows];    ///< largest score so far; −∞ before the first key
  float sum[kGroupRows];    ///< sum of exp2(score − max)
  float alpha[kGroupRows];  ///< what the last step multiplied older results with

  static SoftmaxState without_keys() {
    SoftmaxState state{};
    for (float& max : state.max) max = -std::numeric_limits<float>::infinity();
    return state;
  }
};

/// One step of the online softmax over the rows of one group.
struct SoftmaxStep {
  const float* scores = nullptr;  ///< [8, kScoreStride] raw scores
  Word* weights = nullptr;  ///< float32: may be `scores`; pairs: [8, kScoreStride / 2], key pairs
  Slots slots;
  float scale_log2 = 0;  ///< softmax scale · log2(e), positive
  SoftmaxState* state = nullptr;
};

/// P = exp2(scale_log2 · S − lse_log2), dS = P ∘ (dP − delta), over the rows of one group.
struct GradientStep {
  const float* scores = nullptr;  ///< S, [8, kScoreStride]
  const float* grads = nullptr;   ///< dP, likewise
  Slots slots;
  float scale_log2 = 0;
  const float* lse_log2 = nullptr;  ///< [8]
  const float* delta = nullptr;     ///< [8] row sums of dO ∘ O
  /// P and dS as the left operand of dV and dK. float32: [8, kScoreStride], may be `scores` and
  /// `grads`. Pairs: [4, kScoreStride], pairs of query rows.
  Word* p = nullptr;
  Word* ds = nullptr;
  /// Pairs only: dS as the left operand of dQ, [8, kScoreStride / 2], pairs of keys.
  Word* ds_rows = nullptr;
};

/// out[k · 32 + j] = rows[j · row_stride + k], 32 rows of `steps` words, neither aligned.
struct Transpose {
  const Word* rows = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t steps = 0;
  Word* out = nullptr;
};

/// The inner loops for one instruction set and one kind of word.
struct MicroKernels {
  const char* name = "";
  bool pairs = false;  ///< words are bfloat16 pairs
  void (*product)(const Product&) = nullptr;
  void (*softmax)(const SoftmaxStep&) = nullptr;
  void (*gradient)(const GradientStep&) = nullptr;
  void (*transpose)(const Transpose&) = nullptr;
  /// Multiplies row i of o[8, columns] (row stride `stride`) by factors[i]; columns of 32.
  void (*rescale)(float* o, std::int64_t stride, std::int64_t columns,
                  const float* factors) = nullptr;
};

/// float32 words, for the best instruction set that this CPU has (Highway's run-time dispatch).
const MicroKernels& float32_kernels();
/// bfloat16 pairs, or null where the CPU (or this build) has no bf16 dot products.
const MicroKernels* bfloat16_kernels();

}  // namespace longca::cpu
