#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "attention/cpu/backward_tile.h"
#include "attention/cpu/blocked_plan.h"
#include "core/memory.h"

namespace longca::cpu {

/// The backward pass, five products per pair of tiles. A task owns a chunk of one KV head's keys,
/// accumulates their dK and dV, and visits every query tile that attends to them. Chunks add to a
/// tile's dQ in their order, which a semaphore per tile enforces, so that results do not depend on
/// threads. Tasks start in order of chunk, then head: waits are rare, and a task waits only for
/// tasks that started before it, so there is no deadlock.
class Backward {
 public:
  explicit Backward(const BlockedSetup& setup);
  void run(const BackwardArgs& args);
  std::int64_t bytes() const;

 private:
  /// A query tile that attends to keys of a chunk.
  struct Visit {
    std::int32_t tile;
    std::int32_t order;  ///< number of earlier chunks that visit the tile
    std::int64_t first;  ///< the tile's panels in the chunk: panels[first, last) of HeadTiles
    std::int64_t last;
  };
  struct HeadVisits {
    std::vector<std::int64_t> offsets;       ///< visits of chunk c are [offsets[c], offsets[c + 1])
    std::vector<Visit> visits;               ///< tiles ascending within a chunk
    std::vector<std::int32_t> visit_counts;  ///< per tile: number of chunks that visit it
  };
  /// A query head and one of its tiles.
  struct HeadTile {
    int head;
    std::int32_t tile;
  };

  static HeadVisits plan_visits(const HeadTiles& head, std::int64_t chunks);
  const HeadVisits& visits(int query_head) const;
  std::atomic<std::int32_t>& semaphore(HeadTile at) {
    return dq_semaphore_[tile_offsets_[at.head] + at.tile];
  }

  void add_sink_gradient(const BackwardArgs& args, int head) const;
  void prepare_tile(const BackwardArgs& args, HeadTile at, const BackwardScratch& s);
  void compute_delta(const BackwardArgs& args, int head, Range rows, const BackwardScratch& s);
  void run_chunk(const BackwardArgs& args, int kv_head, std::int64_t chunk,
                 const BackwardScratch& s);
  void pack_chunk(const BackwardArgs& args, int kv_head, Range keys,
                  const BackwardScratch& s) const;
  void pack_tile(const BackwardArgs& args, int head, Range rows, const BackwardScratch& s) const;
  void add_dq(const BackwardArgs& args, HeadTile at, std::int32_t order, const BackwardScratch& s);
  void sum_dq(const BackwardArgs& args, HeadTile at, std::int32_t order, const BackwardScratch& s);

  const BlockedSetup& setup_;
  std::int64_t chunks_;
  std::int64_t scratch_words_;
  std::vector<HeadVisits> heads_;          ///< one per distinct head of the mask
  std::vector<HeadTile> tiles_;            ///< every tile of every query head
  std::vector<std::size_t> tile_offsets_;  ///< of each query head in tiles_
  std::vector<std::atomic<std::int32_t>>
      dq_semaphore_;    ///< per entry of tiles_: chunks added to its dQ
  HostBuffer delta_;    ///< [heads_q, tokens_q] row sums of dO ∘ O
  HostBuffer dq_;       ///< [heads_q, tokens_q, columns] float32 sums if dq itself is not float32
  HostBuffer scratch_;  ///< [threads]
};

}  // namespace longca::cpu
