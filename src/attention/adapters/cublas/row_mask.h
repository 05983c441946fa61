#pragma once

#include <cstdint>
#include <vector>

#include "core/memory.h"
#include "mask/mask.h"

namespace longca {

/// A mask for kernels that own whole rows of scores: the slices per query and, for block-sparse
/// masks, a bitmap of the kept blocks. The arrays are copied to the device as they are.
struct RowMask {
  struct MaskSlice {
    std::int32_t q_begin, q_end, k_begin, k_end;
    /// Query q attends to the k in [k_begin, k_end), with k − k_begin ≥ q − q_begin if `lower` and
    /// k − k_end ≤ q − q_end if `upper`.
    std::int32_t lower, upper;
    bool operator==(const MaskSlice&) const = default;
  };

  /// A band is a run of queries with the same slices.
  std::vector<std::int32_t> band_of_row;   ///< [tokens_q]
  std::vector<std::int32_t> band_offsets;  ///< [bands + 1] into `slices`
  std::vector<MaskSlice> slices;
  // Without block lists the following are empty.
  std::vector<std::int32_t> block_of_row;  ///< [tokens_q]
  std::vector<std::int32_t> block_of_key;  ///< [tokens_k]
  std::vector<std::uint32_t> kept;         ///< [heads, q_blocks, words] bits of key blocks
  std::int32_t heads = 1;
  std::int32_t q_blocks = 0;
  std::int32_t words = 0;
};

RowMask row_mask(const Mask& mask);

}  // namespace longca

namespace longca::naive {

/// A RowMask in device memory.
class DeviceRowMask {
 public:
  explicit DeviceRowMask(const Mask& mask);

  struct View {
    const std::int32_t* band_of_row;
    const std::int32_t* band_offsets;
    const RowMask::MaskSlice* slices;
    const std::int32_t* block_of_row;  ///< null without block lists
    const std::int32_t* block_of_key;
    const std::uint32_t* kept;
    std::int32_t heads, q_blocks, words;
  };
  const View& view() const { return view_; }
  std::int64_t bytes() const;

 private:
  Buffer band_of_row_, band_offsets_, slices_, block_of_row_, block_of_key_, kept_;
  View view_{};
};

}  // namespace longca::naive
