#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// A mask for varlen kernels: consecutive documents on the diagonal.
struct DocumentForm {
  /// Ascending from 0 to the number of tokens: document i is [cu_seqlens[i], cu_seqlens[i + 1]).
  std::vector<std::int64_t> cu_seqlens;
  bool causal = false;
  bool operator==(const DocumentForm&) const = default;
};

/// The form of a square mask of documents that are all full or all causal (a full or causal mask is
/// one document); nothing otherwise, or if block lists drop cells. Depends on the mask's cells
/// only, not on its slices. Documents of one token count as full.
std::optional<DocumentForm> document_form(const Mask& mask);

/// A mask as FlashAttention's window_size = (left, right): query q attends to the keys in
/// [q + offset − left, q + offset + right], offset = k_tokens − q_tokens; −1 stands for no limit,
/// also where a limit would cut nothing. Full is (−1, −1), causal is (−1, 0).
struct WindowForm {
  std::int64_t left = -1;
  std::int64_t right = -1;
  bool operator==(const WindowForm&) const = default;
};
/// The form, if the mask has one; depends on its cells only. Nothing if block lists drop cells.
std::optional<WindowForm> window_form(const Mask& mask);

/// FlashMask's column-wise form (G. Wang et al., "FlashMask: Efficient and Rich Mask Extension of
/// FlashAttention", 2024): key column k masks the rows [lt_start[k], lt_end[k]) below the diagonal
/// and [ut_start[k], ut_end[k]) above it.
struct ColumnIntervals {
  std::vector<std::int32_t> lt_start, lt_end, ut_start, ut_end;
};
/// Nothing if some column of this head needs more than two masked intervals.
std::optional<ColumnIntervals> column_intervals(const Mask& mask, int head);

/// TileClass per block, row-major [ceil(q_tokens / block_m), ceil(k_tokens / block_n)].
struct BlockBitmap {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<TileClass> classes;
};
BlockBitmap block_bitmap(const Mask& mask, int head, std::int64_t block_m, std::int64_t block_n);

}  // namespace longca
