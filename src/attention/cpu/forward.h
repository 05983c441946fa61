#pragma once

#include <cstdint>
#include <vector>

#include "attention/cpu/blocked_plan.h"
#include "core/memory.h"

namespace longca::cpu {

/// The forward pass: keys and values are packed once per KV head, then every (query head, query
/// tile) is one item that walks its panels with the online softmax. An item alone writes its rows,
/// in an order that does not depend on the threads.
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
  std::int64_t panels_;       ///< of keys, per KV head
  std::int64_t key_words_;    ///< packed words of one KV head's keys
  std::int64_t value_words_;  ///< and values
  std::int64_t scratch_words_;
  std::vector<Item> items_;  ///< in the order in which they are started
  HostBuffer keys_;          ///< [heads_k, panels, dim words, 32]
  HostBuffer values_;        ///< [heads_k, token words, columns]
  HostBuffer scratch_;       ///< one per thread
};

}  // namespace longca::cpu
