#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "attention/cpu/micro_kernels.h"
#include "attention/cpu/tile_plan.h"

namespace longca::cpu {

/// Neighbouring keys whose weights also stand in neighbouring columns: one product's reduction.
struct KeyRun {
  std::int64_t column = 0;
  std::int64_t key = 0;
  std::int64_t keys = 0;
};

/// The panels of one step that a group of 8 query rows sees, and the runs of keys in them.
class GroupSlots {
 public:
  /// Where in the rows of scores a panel goes.
  enum class Columns {
    packed,   ///< side by side, panels that the group does not see left out
    by_chunk  ///< where the panel stands in its key chunk
  };
  GroupSlots(const HeadTiles& head, std::span<const PanelRef> panels, int group, Columns columns);

  Slots slots() const { return {slots_.data(), count_}; }
  std::span<const Slot> all() const { return {slots_.data(), static_cast<std::size_t>(count_)}; }
  /// Even key and key count if `pairs`, with weights of 0 where that adds a key.
  std::span<const KeyRun> runs() const {
    return {runs_.data(), static_cast<std::size_t>(run_count_)};
  }

 private:
  void add_run(const Slot& slot, std::uint32_t seen);

  std::array<Slot, kStepPanels> slots_;
  std::array<KeyRun, kStepPanels> runs_;
  int count_ = 0;
  int run_count_ = 0;
};

}  // namespace longca::cpu
