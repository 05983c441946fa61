#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "attention/cpu/backward_tile.h"
#include "attention/cpu/blocked_plan.h"
#include "core/memory.h"

namespace longca::cpu {

/// The backward pass in one walk, five products per tile. An item owns a chunk of one KV head's
/// keys: it keeps their dK and dV and visits every query tile that sees them. What a tile's dQ gets
/// from a chunk is added in the order of the chunks: each addition waits for its turn. Items are
/// started chunk by chunk, heads inside, so that turns are seldom waited for, and an item only ever
/// waits for items that were started before it. Results do not depend on the threads.
class Backward {
 public:
  explicit Backward(const BlockedSetup& setup);
  void run(const BackwardArgs& args);
  std::int64_t bytes() const;

 private:
  /// A query tile that sees keys of a chunk.
  struct Visit {
    std::int32_t tile;
    std::int32_t turn;   ///< how many chunks the tile visits before this one
    std::int64_t first;  ///< its panels in the chunk: panels[first, last) of HeadTiles
    std::int64_t last;
  };
  struct HeadVisits {
    std::vector<std::int64_t> offsets;  ///< visits of chunk c are [offsets[c], offsets[c + 1])
    std::vector<Visit> visits;          ///< tiles ascending within a chunk
    std::vector<std::int32_t> turns;    ///< per tile, how many chunks it visits
  };
  /// A query head and one of its tiles.
  struct HeadTile {
    int head;
    std::int32_t tile;
  };

  static HeadVisits plan_visits(const HeadTiles& head, std::int64_t chunks);
  const HeadVisits& visits(int query_head) const;
  std::atomic<std::int32_t>& turn(HeadTile at) { return turn_[tile_offsets_[at.head] + at.tile]; }

  void prepare_tile(const BackwardArgs& args, HeadTile at);
  void run_chunk(const BackwardArgs& args, int kv_head, std::int64_t chunk,
                 const BackwardScratch& s);
  void pack_chunk(const BackwardArgs& args, int kv_head, Range keys,
                  const BackwardScratch& s) const;
  void pack_tile(const BackwardArgs& args, int head, Range rows, const BackwardScratch& s) const;
  void add_dq(const BackwardArgs& args, HeadTile at, std::int32_t turn, const BackwardScratch& s);
  void sum_dq(const BackwardArgs& args, HeadTile at, std::int32_t turn, const BackwardScratch& s);

  const BlockedSetup& setup_;
  std::int64_t chunks_;
  std::int64_t scratch_words_;
  std::vector<HeadVisits> heads_;          ///< one per distinct head of the mask
  std::vector<HeadTile> tiles_;            ///< every tile of every query head
  std::vector<std::size_t> tile_offsets_;  ///< of each query head in tiles_
  std::vector<std::atomic<std::int32_t>>
      turn_;            ///< as tiles_: how many chunks have added to its dQ
  HostBuffer delta_;    ///< [heads_q, tokens_q] row sums of dO ∘ O
  HostBuffer dq_;       ///< [heads_q, tokens_q, columns] sums where dq itself is not float32
  HostBuffer scratch_;  ///< one per thread
};

}  // namespace longca::cpu
