// A mask as Python sees it: a handle, and functions that fill the caller's arrays. The library is
// loaded for all to bind to, so that none of its functions may have a name of longca.h's.

#include <algorithm>
#include <cstdint>

#include "attention/adapters/python/host_interface.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/kernels/common/block_map.h"
#endif
#include "core/error.h"
#include "guarded.h"
#include "mask/convert.h"
#include "mask/mask.h"
#include "mask/tiles.h"

namespace {

using namespace longca;

const Mask& mask_at(const void* handle) {
  return *static_cast<const Mask*>(handle);
}

constexpr std::int64_t kNoCount = -1;
constexpr std::int64_t kNoValues = 0;

}  // namespace

extern "C" {

/// {queries, keys, distinct heads}.
void longca_host_mask_shape(const void* handle, std::int64_t* shape) {
  const Mask& mask = mask_at(handle);
  shape[0] = mask.q_tokens();
  shape[1] = mask.k_tokens();
  shape[2] = mask.heads();
}

/// The number of slices; fills {q_begin, q_end, k_begin, k_end, type} of each unless `slices` is
/// null.
std::int64_t longca_host_mask_slices(const void* handle, std::int64_t* slices) {
  const auto all = mask_at(handle).slices();
  if (slices != nullptr) {
    for (const MaskSlice& s : all) {
      for (const std::int64_t value : {s.q_begin, s.q_end, s.k_begin, s.k_end}) *slices++ = value;
      *slices++ = static_cast<std::int64_t>(s.type);
    }
  }
  return static_cast<std::int64_t>(all.size());
}

/// The number of cu_seqlens of document_form, 0 if the mask has none; fills them unless
/// `cu_seqlens` is null.
std::int64_t longca_host_mask_documents(const void* handle, std::int64_t* cu_seqlens,
                                        std::int32_t* causal) {
  return guarded(kNoCount, [&] {
    const auto form = document_form(mask_at(handle));
    if (!form) return kNoValues;
    if (cu_seqlens != nullptr) std::ranges::copy(form->cu_seqlens, cu_seqlens);
    *causal = form->causal;
    return static_cast<std::int64_t>(form->cu_seqlens.size());
  });
}

/// 1 and {left, right} of window_form, or 0.
std::int64_t longca_host_mask_window(const void* handle, std::int64_t* window) {
  return guarded(kNoCount, [&] {
    const auto form = window_form(mask_at(handle));
    if (!form) return kNoValues;
    window[0] = form->left;
    window[1] = form->right;
    return std::int64_t{1};
  });
}

/// The largest number of key intervals of a query. Fills begins and ends [max_intervals][queries],
/// absent intervals empty, unless they are null; refuses if `max_intervals` is too small.
std::int64_t longca_host_mask_rows(const void* handle, std::int32_t head,
                                   std::int64_t max_intervals, std::int32_t* begins,
                                   std::int32_t* ends) {
  return guarded(kNoCount, [&] {
    const Mask& mask = mask_at(handle);
    const std::int64_t rows = mask.q_tokens();
    std::int64_t needed = 0;
    for_each_row(mask, head, [&](std::int64_t q, const std::vector<Range>& intervals) {
      const auto count = static_cast<std::int64_t>(intervals.size());
      needed = std::max(needed, count);
      if (begins == nullptr) return;
      for (std::int64_t i = 0; i < std::min(count, max_intervals); ++i) {
        const Range keys = intervals[static_cast<std::size_t>(i)];
        begins[i * rows + q] = static_cast<std::int32_t>(keys.begin);
        ends[i * rows + q] = static_cast<std::int32_t>(keys.end);
      }
    });
    if (begins != nullptr && needed > max_intervals) {
      throw_input_error("a query sees {} intervals of keys, not at most {}", needed, max_intervals);
    }
    return needed;
  });
}

/// 1 and FlashMask's lt_start, lt_end, ut_start, ut_end [4][keys], or 0.
std::int64_t longca_host_mask_columns(const void* handle, std::int32_t head,
                                      std::int32_t* columns) {
  return guarded(kNoCount, [&] {
    const auto form = column_intervals(mask_at(handle), head);
    if (!form) return kNoValues;
    for (const auto* part : {&form->lt_start, &form->lt_end, &form->ut_start, &form->ut_end}) {
      columns = std::ranges::copy(*part, columns).out;
    }
    return std::int64_t{1};
  });
}

/// Fills TileClass (0 empty, 1 partial, 2 full) of [ceil(queries / m)][ceil(keys / n)] tiles.
std::int64_t longca_host_mask_tiles(const void* handle, std::int32_t head, std::int64_t m,
                                    std::int64_t n, std::uint8_t* classes) {
  return guarded(kNoCount, [&] {
    const BlockBitmap tiles = block_bitmap(mask_at(handle), head, m, n);
    std::ranges::transform(tiles.classes, classes,
                           [](TileClass c) { return static_cast<std::uint8_t>(c); });
    return std::int64_t{1};
  });
}

/// Sizes of the block lists {query bounds, key bounds, offsets, indices}; all 0 without any.
void longca_host_mask_block_sizes(const void* handle, std::int64_t* sizes) {
  const BlockLists* blocks = mask_at(handle).blocks();
  std::fill_n(sizes, 4, 0);
  if (blocks == nullptr) return;
  sizes[0] = static_cast<std::int64_t>(blocks->q_bounds.size());
  sizes[1] = static_cast<std::int64_t>(blocks->k_bounds.size());
  sizes[2] = static_cast<std::int64_t>(blocks->offsets.size());
  sizes[3] = static_cast<std::int64_t>(blocks->indices.size());
}
/// Fills arrays of those sizes, those that are not null: mask.h, BlockLists.
void longca_host_mask_blocks(const void* handle, std::int64_t* q_bounds, std::int64_t* k_bounds,
                             std::int64_t* offsets, std::int32_t* indices) {
  const BlockLists* blocks = mask_at(handle).blocks();
  if (blocks == nullptr) return;
  const auto fill = [](const auto& from, auto* to) {
    if (to != nullptr) std::ranges::copy(from, to);
  };
  fill(blocks->q_bounds, q_bounds);
  fill(blocks->k_bounds, k_bounds);
  fill(blocks->offsets, offsets);
  fill(blocks->indices, indices);
}

/// The kept blocks as bits in device memory (attention/kernels/common/block_map.h), and their
/// {lists, rows, columns, words of a row}; null if that fails.
const void* longca_host_mask_block_bits([[maybe_unused]] const void* handle,
                                        [[maybe_unused]] std::int64_t* shape) {
  return guarded(static_cast<const void*>(nullptr), [&]() -> const void* {
#ifdef LONGCA_WITH_CUDA
    const BlockBits bits = BlockMap::of(mask_at(handle)).bits();
    shape[0] = bits.heads;
    shape[1] = bits.rows;
    shape[2] = bits.columns;
    shape[3] = bits.row_words;
    return bits.words;
#else
    throw_input_error("this build is without CUDA");
#endif
  });
}

}  // extern "C"
