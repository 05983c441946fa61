#include "mask/empty_rows.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/error.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

/// Whether one of the kept key blocks reaches into `keys`.
bool reaches(const BlockLists& blocks, std::span<const std::int32_t> kept, Range keys) {
  const auto ends_before = [&](std::int32_t block, std::int64_t token) {
    return blocks.k_bounds[static_cast<std::size_t>(block) + 1] <= token;
  };
  const auto first = std::lower_bound(kept.begin(), kept.end(), keys.begin, ends_before);
  return first != kept.end() && blocks.k_bounds[static_cast<std::size_t>(*first)] < keys.end;
}

}  // namespace

std::int64_t rows_without_keys(const Mask& mask) {
  LONGCA_CHECK(mask.blocks() != nullptr, "a mask of {} × {} tokens without blocks", mask.q_tokens(),
               mask.k_tokens());
  const BlockLists& blocks = *mask.blocks();
  const std::vector<MaskSlice> slices(mask.slices().begin(), mask.slices().end());
  const Mask frame = Mask::from_slices(mask.q_tokens(), mask.k_tokens(), slices);
  std::atomic<std::int64_t> empty{0};
  ThreadPool::global().parallel_for(blocks.q_blocks(), [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    const Range rows = {blocks.q_bounds[at], blocks.q_bounds[at + 1]};
    const bool whole = frame.tile_class(0, rows, {0, mask.k_tokens()}) == TileClass::full;
    std::int64_t found = 0;
    if (whole) {
      for (int head = 0; head < blocks.heads; ++head) {
        if (blocks.kept(head, i).empty()) found += rows.size();
      }
    } else {
      for (std::int64_t row = rows.begin; row < rows.end; ++row) {
        const std::vector<Range> keys = frame.key_intervals(0, row);
        for (int head = 0; head < blocks.heads; ++head) {
          const auto kept = blocks.kept(head, i);
          found += std::ranges::none_of(keys, [&](Range r) { return reaches(blocks, kept, r); });
        }
      }
    }
    empty += found;
  });
  return empty;
}

}  // namespace longca
