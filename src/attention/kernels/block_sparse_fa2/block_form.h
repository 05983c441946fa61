#pragma once

#include <cstdint>

#include "attention/kernels/block_sparse_fa2/band.h"
#include "core/status.h"
#include "mask/mask.h"

namespace longca::fa2_sparse {

/// The smallest tile size, which must divide block lengths.
inline constexpr std::int64_t kBlockUnit = 64;

/// The kernel's form of a block-sparse mask: query q attends to key k if query block q / q_block
/// keeps key block k / k_block and the band allows the cell.
struct BlockForm {
  int q_block = 0;  ///< tokens per block, multiples of kBlockUnit; the last block may be shorter
  int k_block = 0;
  Band band{};
};

/// Sets the form, or returns `unsupported` and the reason: block lengths differ or are no multiple
/// of kBlockUnit, or the slices are not one band.
Support block_form(const Mask& mask, BlockForm& form);

}  // namespace longca::fa2_sparse
