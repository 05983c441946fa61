#include "attention/cpu/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/rounding.h"

namespace longca::cpu {
namespace {

/// Packs a bfloat16 pair, the first in the low 16 bits.
Word pair(BFloat16 low, BFloat16 high) {
  return std::bit_cast<Word>(static_cast<std::uint32_t>(low.bits) |
                             static_cast<std::uint32_t>(high.bits) << 16);
}

template <typename T>
void copy_floats(const T* row, std::int64_t dim, Word* out) {
  for (std::int64_t k = 0; k < dim; ++k) out[k] = static_cast<float>(row[k]);
}

template <typename T>
void transpose_floats(const ConstTensorView& x, std::int64_t head, Range rows, Word* out) {
  for (std::int64_t j = 0; j < rows.size(); ++j) {
    const T* row = x.row<T>(rows.begin + j, head);
    for (std::int64_t k = 0; k < x.dim; ++k) out[k * kPanelKeys + j] = static_cast<float>(row[k]);
  }
}

void transpose_pairs(const ConstTensorView& x, std::int64_t head, Range rows, Word* out) {
  for (std::int64_t j = 0; j < rows.size(); ++j) {
    const BFloat16* row = x.row<BFloat16>(rows.begin + j, head);
    for (std::int64_t k = 0; k < x.dim; k += 2) {
      out[k / 2 * kPanelKeys + j] = pair(row[k], k + 1 < x.dim ? row[k + 1] : BFloat16());
    }
  }
}

void stack_pairs(const BFloat16* even, const BFloat16* odd, std::int64_t dim, Word* out) {
  for (std::int64_t k = 0; k < dim; ++k) out[k] = pair(even[k], odd[k]);
}

}  // namespace

Packing::Packing(DType dtype, std::int64_t dim, const MicroKernels& kernels)
    : kernels_(&kernels),
      dtype_(dtype),
      pairs_(kernels.pairs),
      dim_(dim),
      dim_words_(pairs_ ? ceil_div(dim, 2) : dim),
      row_stride_(round_up(dim_words_, 16) + 16),
      columns_(round_up(dim, kPanelKeys)) {
  LONGCA_CHECK(!pairs_ || dtype == DType::bfloat16, "only bfloat16 is packed in pairs");
}

void Packing::rows(const ConstTensorView& x, std::int64_t head, Range rows, std::int64_t padded,
                   Word* out) const {
  Word* const end = out + padded * row_stride_;
  for (std::int64_t t = rows.begin; t < rows.end; ++t, out += row_stride_) {
    std::fill(out + dim_words_ - 1, out + row_stride_, 0.0F);  // an odd dim leaves half a pair
    if (pairs_) {
      std::memcpy(out, x.row<BFloat16>(t, head), static_cast<std::size_t>(dim_) * sizeof(BFloat16));
    } else {
      with_type_of(dtype_, [&]<typename T>(T) { copy_floats(x.row<T>(t, head), dim_, out); });
    }
  }
  std::fill(out, end, 0.0F);
}

void Packing::transposed(const ConstTensorView& x, std::int64_t head, Range rows, Word* out) const {
  // Full panels of a tensor whose rows are whole words are transposed by words.
  const bool has_words =
      dtype_ == DType::float32 || (pairs_ && dim_ % 2 == 0 && x.token_stride % 2 == 0);
  if (rows.size() < kPanelKeys || !has_words) return transpose_elements(x, head, rows, out);
  const std::int64_t stride = pairs_ ? x.token_stride / 2 : x.token_stride;
  const void* first = pairs_ ? static_cast<const void*>(x.row<BFloat16>(rows.begin, head))
                             : x.row<float>(rows.begin, head);
  kernels_->transpose({static_cast<const Word*>(first), stride, dim_words_, out});
}

void Packing::transpose_elements(const ConstTensorView& x, std::int64_t head, Range rows,
                                 Word* out) const {
  std::fill_n(out, panel_words(), 0.0F);
  if (pairs_) return transpose_pairs(x, head, rows, out);
  with_type_of(dtype_, [&]<typename T>(T) { transpose_floats<T>(x, head, rows, out); });
}

void Packing::stacked(const ConstTensorView& x, std::int64_t head, Range rows, std::int64_t padded,
                      Word* out) const {
  Word* const end = out + token_words(padded) * columns_;
  if (pairs_) {
    const std::vector<BFloat16> zeros(static_cast<std::size_t>(dim_));
    for (std::int64_t t = rows.begin; t < rows.end; t += 2, out += columns_) {
      const BFloat16* odd = t + 1 < rows.end ? x.row<BFloat16>(t + 1, head) : zeros.data();
      stack_pairs(x.row<BFloat16>(t, head), odd, dim_, out);
      std::fill(out + dim_, out + columns_, 0.0F);
    }
  } else {
    with_type_of(dtype_, [&]<typename T>(T) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t, out += columns_) {
        copy_floats(x.row<T>(t, head), dim_, out);
        std::fill(out + dim_, out + columns_, 0.0F);
      }
    });
  }
  std::fill(out, end, 0.0F);
}

void row_dots(const ConstTensorView& a, const ConstTensorView& b, std::int64_t head, Range rows,
              float* out) {
  const auto dots = [&]<typename A, typename B>(A, B) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      const auto* x = a.row<A>(t, head);
      const auto* y = b.row<B>(t, head);
      float partial[16] = {};
      std::int64_t k = 0;
      for (; k + 16 <= a.dim; k += 16) {
        for (int j = 0; j < 16; ++j) partial[j] += float(x[k + j]) * float(y[k + j]);
      }
      for (; k < a.dim; ++k) partial[0] += float(x[k]) * float(y[k]);
      for (int width = 8; width > 0; width /= 2) {
        for (int j = 0; j < width; ++j) partial[j] += partial[j + width];
      }
      *out++ = partial[0];
    }
  };
  with_type_of(a.dtype, [&](auto element_a) {
    with_type_of(b.dtype, [&](auto element_b) { dots(element_a, element_b); });
  });
}

}  // namespace longca::cpu
