#pragma once

#include <cstdint>

#include "attention/cpu/micro_kernels.h"
#include "core/tensor.h"
#include "mask/mask_slice.h"

namespace longca::cpu {

/// Copies rows of one head of a tensor [tokens, heads, dim] into the operand layouts of
/// MicroKernels, zero-padded to `padded` rows and in the columns. Words are bfloat16 pairs along
/// the reduction if the kernels take pairs (bfloat16 tensors only), else float32.
class Packing {
 public:
  Packing(DType dtype, std::int64_t dim, const MicroKernels& kernels);

  /// Words of the tensors' dimension as the reduction: dim, or half of it with pairs.
  std::int64_t dim_words() const { return dim_words_; }
  /// Words between the rows of layout `rows`.
  std::int64_t row_stride() const { return row_stride_; }
  /// The dimension as columns of a product: dim rounded up to whole panels.
  std::int64_t columns() const { return columns_; }
  /// Whether `rows` equals `stacked` except for the stride, as for float32 words.
  bool rows_are_stacked() const { return !pairs_; }
  /// Words of `tokens` tokens as the reduction.
  std::int64_t token_words(std::int64_t tokens) const { return pairs_ ? tokens / 2 : tokens; }
  /// Words of one panel of `transposed`.
  std::int64_t panel_words() const { return dim_words_ * kPanelKeys; }

  /// Left operand, reduction over dim: out[row · row_stride + k].
  void rows(const ConstTensorView& x, std::int64_t head, Range rows, std::int64_t padded,
            Word* out) const;
  /// Right operand, reduction over dim, 32 tokens: out[k · 32 + token].
  void transposed(const ConstTensorView& x, std::int64_t head, Range rows, Word* out) const;
  /// Right operand, reduction over tokens: out[token word · columns + column]; `padded` is even.
  void stacked(const ConstTensorView& x, std::int64_t head, Range rows, std::int64_t padded,
               Word* out) const;

 private:
  void transpose_elements(const ConstTensorView& x, std::int64_t head, Range rows, Word* out) const;

  const MicroKernels* kernels_;
  DType dtype_;
  bool pairs_;
  std::int64_t dim_;
  std::int64_t dim_words_;
  std::int64_t row_stride_;
  std::int64_t columns_;
};

/// out[i] = a[rows.begin + i] · b[rows.begin + i] over the head dimension, in float32.
void row_dots(const ConstTensorView& a, const ConstTensorView& b, std::int64_t head, Range rows,
              float* out);

}  // namespace longca::cpu
