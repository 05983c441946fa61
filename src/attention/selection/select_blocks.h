#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/problem.h"
#include "core/tensor.h"
#include "mask/block_draw.h"
#include "mask/generators.h"
#include "mask/mask.h"

namespace longca {

/// Selects the blocks of a block-sparse mask by the scores of mean-pooled Q and K.
///
/// The score of a (query block, key block) pair is scale · mean query · mean key. A query block
/// keeps the kept_blocks(density, visible) visible key blocks with the highest scores; ties go to
/// the earlier block. VSA's coarse stage (P. Zhang et al., "VSA: Faster Video Diffusion with
/// Trainable Sparse Attention", 2025), MoBA (E. Lu et al., 2025) and others select so. Lists are
/// per query head or per KV head; for a KV head, mean queries are over its whole group of query
/// heads.
///
/// Means are summed in float64 and rounded to float32; scores are float32. Multithreaded, in host
/// memory; q [tokens_q, heads_q, dim] and k [tokens_k, heads_k, dim] of float32 or bfloat16. Throws
/// InputError for another dtype, or if choice.heads is neither heads_q nor heads_k.
BlockLists select_blocks(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                         const BlockChoice& choice);

/// [heads, blocks, dim] float32: the mean of every block of `x` [tokens, x.heads, dim] over groups
/// of x.heads / heads adjacent heads.
std::vector<float> pooled(const ConstTensorView& x, const std::vector<std::int64_t>& bounds,
                          int heads);

/// Throws InputError as select_blocks does.
void check_choice(const Problem& problem, const BlockChoice& choice);

/// The mask of `spec` with the blocks that select_blocks chooses for these inputs, selected on the
/// problem's device. On a GPU the blocks stay in device memory too (BlockMap::adopt).
GeneratedMask selected_mask(const MaskSpec& spec, const Problem& problem, const ConstTensorView& q,
                            const ConstTensorView& k);

}  // namespace longca
