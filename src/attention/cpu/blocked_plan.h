#pragma once

#include <memory>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/cpu/micro_kernels.h"
#include "attention/cpu/packing.h"
#include "attention/cpu/tile_plan.h"
#include "core/thread_pool.h"

namespace longca::cpu {

/// Boundaries of query tiles.
enum class TileCut : std::uint8_t {
  grid,    ///< every kTileRows rows
  blocks,  ///< also at the query bounds of the mask's block lists
};

struct BlockedOptions {
  TileCut cut = TileCut::grid;
  /// Use the CPU's bf16 dot products, if it has them, for bfloat16 problems. Else packing converts
  /// bfloat16 to float32.
  bool bf16_products = true;
  ThreadPool* pool = nullptr;  ///< null: ThreadPool::global()
};

/// The immutable state that a plan's forward and backward pass share.
struct BlockedSetup {
  Problem problem;
  const MicroKernels* kernels;
  Packing packing;        ///< of q and k, and what is summed like them
  Packing value_packing;  ///< of v, o and dO
  ThreadPool* pool;
  std::vector<HeadTiles> heads;  ///< per head of the mask

  BlockedSetup(const Problem& problem, const Mask& mask, const BlockedOptions& options);

  /// The index into `heads` for a query head, and its tiles.
  int mask_head(int query_head) const;
  const HeadTiles& tiles(int query_head) const;
  int kv_head(int query_head) const { return query_head / problem.group_size(); }
  bool capped() const { return problem.softcap > 0; }
  /// The factor of products q·k in the argument of the softcap's tanh.
  float cap_factor() const { return problem.scale() / problem.softcap; }
  /// The factor of scores, products q·k or their tanh, in units of log2.
  float scale_log2() const;
  std::int64_t bytes() const;
};

/// The plan of `flash` and `block_sparse`: blocked attention over the tiles of BlockedSetup.
std::unique_ptr<Plan> make_blocked_plan(const Problem& problem, const Mask& mask,
                                        const BlockedOptions& options);

}  // namespace longca::cpu
