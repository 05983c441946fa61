#pragma once

#include <cstdint>

#include "attention/adapters/cublas/row_mask.h"
#include "core/memory.h"
#include "mask/mask.h"

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
