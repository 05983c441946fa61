#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// Also in builds without CUDA.
Capabilities fa2_sparse_native_capabilities();
/// Whether the kernel can express the problem, or `unsupported` and the reason; needs no GPU.
Support fa2_sparse_native_can_express(const Problem& problem, const Mask& mask);

/// Block-sparse attention as published in block_sparse_attn (J. Guo et al., "Block Sparse
/// Attention", 2024): FlashAttention-2 (T. Dao, 2023) over a list of kept key blocks per head and
/// query block. Blocks are uniform, of a multiple of 64 tokens (published: 128); lists are per KV
/// head or per query head; a causal or window mask may apply within kept blocks. mma.sync, for
/// compute capability 8.0 and later. `shared_bytes` limits shared memory per CTA; 0 means the
/// device's limit.
std::unique_ptr<Kernel> make_fa2_sparse_native();
std::unique_ptr<Kernel> make_fa2_sparse_native(int shared_bytes);

}  // namespace longca
