#pragma once

#include <cstdint>
#include <vector>

#include "attention/cpu/blocked_plan.h"
#include "core/memory.h"

namespace longca::cpu {

/// The forward pass: packs keys and values once per KV head, then runs one task per (query head,
/// query tile), which loops over its panels with the online softmax. A task alone writes its rows,
/// so results do not depend on threads.
class Forward {
 public:
  explicit Forward(const BlockedSetup& setup);
  void run(const ForwardArgs& args);
  std::int64_t bytes() const;

 private:
  struct Item {
    std::int32_t head;
    std::int32_t tile;
  };
  struct Scratch;

  Scratch scratch_of(int worker) const;
  void pack_panel(const ForwardArgs& args, std::int64_t kv_head, std::int64_t panel);
  void run_tile(const ForwardArgs& args, const Item& item, Scratch scratch);
  void step(const HeadTiles& head, std::span<const PanelRef> panels, int group,
            std::int64_t kv_head, const Scratch& scratch);

  const BlockedSetup& setup_;
  std::int64_t panels_;       ///< key panels per KV head
  std::int64_t key_words_;    ///< packed words of a KV head's keys
  std::int64_t value_words_;  ///< packed words of a KV head's values
  std::int64_t scratch_words_;
  std::vector<Item> items_;  ///< in launch order
  HostBuffer keys_;          ///< [heads_k, panels, dim words, 32]
  HostBuffer values_;        ///< [heads_k, token words, columns of v]
  HostBuffer scratch_;       ///< [threads]
};

}  // namespace longca::cpu
