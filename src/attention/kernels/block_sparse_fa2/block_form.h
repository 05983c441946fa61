#pragma once

#include <cstdint>

#include "attention/kernels/block_sparse_fa2/band.h"
#include "core/status.h"
#include "mask/mask.h"

namespace longca::fa2_sparse {

/// Block lengths are multiples of this: the smallest tile.
inline constexpr std::int64_t kBlockUnit = 64;

/// A block-sparse mask as the kernel takes it: query q and key k see each other if block q /
/// q_block of the list keeps key block k / k_block, and the band allows it.
struct BlockForm {
  int q_block = 0;  ///< tokens of a block, multiples of kBlockUnit; the last block may be cut
  int k_block = 0;
  Band band{};
};

/// Writes the form; or `unsupported` and why the mask has none: blocks of another length, or slices
/// that are no band of diagonals.
Support block_form(const Mask& mask, BlockForm& form);

}  // namespace longca::fa2_sparse
