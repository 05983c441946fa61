#pragma once

#include <cstdint>

#include "attention/api/problem.h"
#include "attention/kernels/slice/planner/tile_lists.h"
#include "cost/platform.h"
#include "mask/mask.h"

// How rows are cut into query tiles: how many query heads of a KV head, P, share their rows, and
// which tiles share key tiles. Deterministic.
namespace longca::slice {

/// Query heads that share a KV head and a list of the mask, which has `lists` of them: the
/// `group_size` below.
int shared_heads(int heads_q, int heads_k, int lists);

/// Whether clusters of two CTAs can compute neighbouring head blocks of a KV head and list, each
/// CTA loading one sub-tile of every key tile for both. Not up to 64 dimensions, where a CTA has
/// two streams of work tiles.
bool pairs_fit(int group_size, int pack, int head_dim);

/// P of the forward pass: the smallest of 1, 2, 4 and 8 that divides `group_size` and whose tiles
/// cost nearly as little as the best (min_pack_gain), on a sample of the mask's rows; with pairs
/// where they fit. Less above 512K tokens, so that planning takes 10 ms. A millisecond for a
/// static mask. With `joins`, remainders of kept blocks are joined where CTAs are on their own.
int choose_pack(const Mask& mask, int group_size, int head_dim, bool joins = false,
                const cost::Platform& platform = cost::default_platform());

/// The forward pass's tiling for clusters of CTAs: choose_pack, and pairs of query tiles where head
/// blocks make no pairs (pairs_fit) and these would cost less, on the same sample of rows. Without
/// block lists only. Another millisecond. `joins`: whether the kernel reads joints.
Tiling choose_tiling(const Mask& mask, int group_size, int head_dim, bool joins = false,
                     const cost::Platform& platform = cost::default_platform());

/// P of the backward pass: the greatest of 1, 2, 4 and 8 that divides `group_size`, as small query
/// tiles waste least; less at hundreds of thousands of tokens, whose lists would take long. But 1
/// where neighbouring key tiles mostly end with different queries (sliding windows): CTAs then
/// visit the same rows some steps apart, and these stay in L2 only if the steps are of few rows. A
/// few milliseconds for a static mask of a million tokens.
int choose_backward_pack(const Mask& mask, int group_size);

/// KV heads in work at a time in the forward pass, a divisor of `heads_k`: as many as have K and V,
/// of 2 bytes an element, in half of the L2 cache. CTAs take all their tiles before those of the
/// next.
int forward_section_heads(std::int64_t tokens_k, const DimPair& dims, int heads_k,
                          std::int64_t cache_bytes);

}  // namespace longca::slice
