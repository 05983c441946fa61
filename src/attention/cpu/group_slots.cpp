#include "attention/cpu/group_slots.h"

#include <bit>

namespace longca::cpu {
namespace {

std::uint32_t seen_by_any(const std::uint32_t* bits) {
  std::uint32_t seen = 0;
  for (int i = 0; i < kGroupRows; ++i) seen |= bits[i];
  return seen;
}

}  // namespace

GroupSlots::GroupSlots(const HeadTiles& head, std::span<const PanelRef> panels, int group,
                       Columns columns) {
  for (const PanelRef& ref : panels) {
    const std::uint32_t* bits = head.bits_of(ref, group);
    const std::uint32_t seen = bits ? seen_by_any(bits) : ~0U;
    if (seen == 0) continue;
    const int place = columns == Columns::packed ? count_ : ref.panel % kChunkPanels;
    Slot& slot = slots_[static_cast<std::size_t>(count_++)];
    slot = {place * kPanelKeys, ref.panel, bits};
    add_run(slot, seen);
  }
}

/// From the first key seen to the last, to whole pairs of keys: the weights between are 0 where a
/// row does not see the key.
void GroupSlots::add_run(const Slot& slot, std::uint32_t seen) {
  const int begin = std::countr_zero(seen) & ~1;
  const int end = (kPanelKeys - std::countl_zero(seen) + 1) & ~1;
  const KeyRun run{slot.column + begin, std::int64_t{slot.panel} * kPanelKeys + begin, end - begin};
  if (run_count_ > 0) {
    KeyRun& last = runs_[static_cast<std::size_t>(run_count_ - 1)];
    if (last.column + last.keys == run.column && last.key + last.keys == run.key) {
      last.keys += run.keys;
      return;
    }
  }
  runs_[static_cast<std::size_t>(run_count_++)] = run;
}

}  // namespace longca::cpu
