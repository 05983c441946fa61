#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// Scores, softmax, product, one head at a time with a full score matrix; any mask. The plain
/// implementation that the others are compared with.
std::unique_ptr<Kernel> make_naive_cpu();

/// Blocked attention with online softmax (T. Dao, "FlashAttention-2", 2023), SIMD, all cores; skips
/// empty tiles and masks partial ones only.
std::unique_ptr<Kernel> make_flash_cpu();

/// `flash` over the block lists of a block-sparse mask, tiles following the blocks.
std::unique_ptr<Kernel> make_block_sparse_cpu();

}  // namespace longca
