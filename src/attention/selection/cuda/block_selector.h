#pragma once

#include <cstdint>

#include "attention/api/problem.h"
#include "core/device.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "mask/block_draw.h"

namespace longca {

/// select_blocks on a GPU by three kernels: pool, scores, top-k. Scores are computed in slabs of
/// bounded size, of some heads or rows at a time, and the selection is written as a bitmap.
///
/// Means are summed in float32 and scores have float32's accuracy, so the selection may differ from
/// the CPU's for scores that differ by rounding errors.
class CudaBlockSelector {
 public:
  static constexpr std::int64_t kSlabBytes = std::int64_t{128} << 20;

  /// Allocates all memory. Throws as select_blocks does, and OutOfMemory.
  CudaBlockSelector(const Problem& problem, const BlockChoice& choice,
                    std::int64_t slab_bytes = kSlabBytes);

  /// Queues the selection on `stream`; may be repeated.
  void run(const ConstTensorView& q, const ConstTensorView& k, Stream stream);

  /// The bitmap of the last run (layout: block_bits in mask/block_lists.h), valid on its stream.
  const std::uint32_t* words() const { return words_.as<std::uint32_t>(); }
  std::int64_t word_count() const { return words_.bytes() / 4; }
  /// Moves the bitmap out; no run may follow.
  Buffer take_words() { return std::move(words_); }
  /// Bytes of device memory held.
  std::int64_t bytes() const;

 private:
  void pool(const ConstTensorView& x, const Buffer& bounds, std::int64_t blocks, int lists,
            const Buffer& out, Stream stream) const;

  Problem problem_;
  int heads_;
  std::int64_t q_blocks_, k_blocks_;
  int pitch_, key_pitch_;
  int slab_heads_, slab_rows_;
  Buffer q_bounds_, k_bounds_, visible_, kept_;
  Buffer pooled_q_, pooled_k_, slab_, words_;
};

}  // namespace longca
