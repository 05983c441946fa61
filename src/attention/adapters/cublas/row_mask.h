#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// A mask as a kernel reads it that owns whole rows of scores: per query the slices that hold it,
/// and for block-sparse masks bits of the kept blocks. Arrays to be copied to a device as they are.
struct RowMask {
  struct MaskSlice {
    std::int32_t q_begin, q_end, k_begin, k_end;
    /// Query q sees keys [k_begin, k_end) cut to k_begin + (q − q_begin) and above where `lower`,
    /// and to k_end − (q_end − q) and below where `upper`.
    std::int32_t lower, upper;
    bool operator==(const MaskSlice&) const = default;
  };

  /// Queries in a row that lie in the same slices form a band.
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
