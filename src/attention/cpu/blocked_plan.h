#pragma once

#include <memory>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/cpu/micro_kernels.h"
#include "attention/cpu/packing.h"
#include "attention/cpu/tile_plan.h"
#include "core/thread_pool.h"

namespace longca::cpu {

/// Where query tiles are cut.
enum class TileCut : std::uint8_t {
  grid,    ///< every kTileRows rows
  blocks,  ///< also at the query bounds of the mask's block lists
};

struct BlockedOptions {
  TileCut cut = TileCut::grid;
  /// Use the CPU's bf16 dot products for bfloat16 problems where it has them; otherwise bfloat16 is
  /// converted to float32 while packing.
  bool bf16_products = true;
  ThreadPool* pool = nullptr;  ///< null: the program's
};

/// What the forward and the backward pass of one plan share; immutable once made.
struct BlockedSetup {
  Problem problem;
  const MicroKernels* kernels;
  Packing packing;
  ThreadPool* pool;
  std::vector<HeadTiles> heads;  ///< one per distinct head of the mask

  BlockedSetup(const Problem& problem, const Mask& mask, const BlockedOptions& options);

  /// Which of `heads` a query head uses, and its tiles.
  int mask_head(int query_head) const;
  const HeadTiles& tiles(int query_head) const;
  int kv_head(int query_head) const { return query_head / problem.group_size(); }
  /// Softmax scale in units of log2.
  float scale_log2() const;
  std::int64_t bytes() const;
};

/// The plan of `flash` and `block_sparse`: blocked attention over the tiles of BlockedSetup.
std::unique_ptr<Plan> make_blocked_plan(const Problem& problem, const Mask& mask,
                                        const BlockedOptions& options);

}  // namespace longca::cpu
