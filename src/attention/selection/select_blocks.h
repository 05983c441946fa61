#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/problem.h"
#include "core/tensor.h"
#include "mask/block_draw.h"
#include "mask/mask.h"

namespace longca {

/// Chooses the blocks of a block-sparse mask from real scores.
///
/// The queries and the keys of every block are averaged (mean-pooled). A query block's score with a
/// key block is scale · mean query · mean key, and of its visible key blocks it keeps the
/// kept_blocks(density, visible) with the highest scores, of equal scores the earlier block. This
/// is how VSA's coarse stage (P. Zhang et al., "VSA: Faster Video Diffusion with Trainable Sparse
/// Attention", 2025), MoBA (E. Lu et al., 2025) and Quest's kin choose. Lists are per query head,
/// or per KV head, whose mean query is that over all query heads of its group.
///
/// Means are summed in float64 and kept in float32, scores are float32. By several threads, in host
/// memory; float32 or bfloat16, any strides. Throws InputError for another dtype, or a choice whose
/// heads are neither those of the queries nor of the keys.
BlockLists select_blocks(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                         const BlockChoice& choice);

/// [choice heads, blocks, dim] float32: the mean of every block of `x`, over `group` = x.heads /
/// heads neighbouring heads. What select_blocks scores.
std::vector<float> pooled(const ConstTensorView& x, const std::vector<std::int64_t>& bounds,
                          int heads);

/// Throws as select_blocks does.
void check_choice(const Problem& problem, const BlockChoice& choice);

}  // namespace longca
