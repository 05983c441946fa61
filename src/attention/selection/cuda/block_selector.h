#pragma once

#include <cstdint>

#include "attention/api/problem.h"
#include "core/device.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "mask/block_draw.h"

namespace longca {

/// select_blocks on a GPU: three kinds of kernels, which pool, score and choose. The scores live in
/// a slab of bounded size, some heads' or rows' at a time, and go out as bits.
///
/// Means are summed in float32, scores have float32's accuracy: where two scores differ by less
/// than that rounds, the choice may differ from the CPU's.
class CudaBlockSelector {
 public:
  static constexpr std::int64_t kSlabBytes = std::int64_t{128} << 20;

  /// Takes memory for everything. Throws as select_blocks does, and OutOfMemory.
  CudaBlockSelector(const Problem& problem, const BlockChoice& choice,
                    std::int64_t slab_bytes = kSlabBytes);

  /// Queues the selection on `stream`; may be repeated.
  void run(const ConstTensorView& q, const ConstTensorView& k, Stream stream);

  /// What the last run chose, in the layout of mask/block_bits.h: to be read after it on its
  /// stream.
  const std::uint32_t* words() const { return words_.as<std::uint32_t>(); }
  std::int64_t word_count() const { return words_.bytes() / 4; }
  /// The words themselves; no run may follow.
  Buffer take_words() { return std::move(words_); }
  /// All that this holds.
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
