#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// What the kernel can do; also in builds without it.
Capabilities fa2_sparse_native_capabilities();
/// ok, or `unsupported` and why the kernel cannot express the problem; asks no GPU.
Support fa2_sparse_native_can_express(const Problem& problem, const Mask& mask);

/// Block-sparse attention as published in block_sparse_attn (J. Guo et al., "Block Sparse
/// Attention", 2024): FlashAttention-2 (T. Dao, 2023) over a list of kept key blocks per head and
/// query block. Blocks are uniform, of a multiple of 64 tokens (published: 128), lists per KV head
/// or per query head, cut by a causal diagonal or a window where the mask says so. On tensor cores
/// by mma.sync, for compute capability 8.0 and later. `shared_bytes` are what a CTA may
/// have; 0 stands for what the device gives.
std::unique_ptr<Kernel> make_fa2_sparse_native();
std::unique_ptr<Kernel> make_fa2_sparse_native(int shared_bytes);

}  // namespace longca
