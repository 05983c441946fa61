#pragma once

#include <cstdint>

#include "attention/cpu/micro_kernels.h"
#include "core/tensor.h"
#include "mask/mask_slice.h"

namespace longca::cpu {

/// Copies rows of a tensor's head into the operand layouts of MicroKernels. `rows` are rows of the
/// tensor; zeros follow up to `padded` rows, and after the last column.
///
/// With pairs (bfloat16 tensors only) a word holds two neighbours along the reduction; otherwise
/// values become float32 words.
class Packing {
 public:
  Packing(DType dtype, std::int64_t dim, const MicroKernels& kernels);

  /// Words along the head dimension where it is the reduction: dim, or half of it.
  std::int64_t dim_words() const { return dim_words_; }
  /// Words from one row to the next of `rows`.
  std::int64_t row_stride() const { return row_stride_; }
  /// Columns of a product over the head dimension: dim rounded up to whole panels.
  std::int64_t columns() const { return columns_; }
  /// `rows` of float32 words have the layout of `stacked` too, but for the stride.
  bool rows_are_stacked() const { return !pairs_; }
  /// Rows of words that `tokens` tokens take where they are the reduction.
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

/// out[i] = Σ a[i]·b[i] over the head dimension of rows `rows`, in float32.
void row_dots(const ConstTensorView& a, const ConstTensorView& b, std::int64_t head, Range rows,
              float* out);

}  // namespace longca::cpu
