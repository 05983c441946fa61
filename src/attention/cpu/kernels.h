#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// Naive attention with a full score matrix, one head at a time; any mask.
std::unique_ptr<Kernel> make_naive_cpu();

/// Blocked attention with online softmax (T. Dao, "FlashAttention-2", 2023), SIMD and
/// multithreaded; skips empty tiles and masks partial ones only.
std::unique_ptr<Kernel> make_flash_cpu();

/// `flash` for block-sparse masks, with query tiles that end at block bounds.
std::unique_ptr<Kernel> make_block_sparse_cpu();

}  // namespace longca
