#include "attention/kernels/block_sparse_fa2/work_order.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "attention/kernels/common/mma/head_parts.h"
#include "cost/schedule.h"

namespace longca::fa2_sparse {
namespace {

/// Bounds the search: schedules with more CTAs than this per concurrent CTA are not simulated.
constexpr std::int64_t kMaxSimulatedWaves = 128;

std::int32_t count_of(const Work& work, std::span<const std::int32_t> counts, int unit, int tile) {
  const std::int64_t list = std::int64_t{unit} * work.lists / work.units;
  return counts[static_cast<std::size_t>(list * work.tiles + tile)];
}

/// Appends the CTAs of units [first, end) by descending count, by a stable counting sort.
void append_section(const Work& work, std::span<const std::int32_t> counts, int first, int end,
                    std::int32_t max_count, std::vector<std::int32_t>& order) {
  std::vector<std::size_t> place(static_cast<std::size_t>(max_count) + 2, 0);
  const auto rank = [&](int unit, int tile) {
    return static_cast<std::size_t>(max_count - count_of(work, counts, unit, tile));
  };
  for (int unit = first; unit < end; ++unit) {
    for (int tile = 0; tile < work.tiles; ++tile) ++place[rank(unit, tile) + 1];
  }
  place[0] = order.size();
  for (std::size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
  order.resize(order.size() +
               static_cast<std::size_t>(end - first) * static_cast<std::size_t>(work.tiles));
  for (int tile = 0; tile < work.tiles; ++tile) {
    for (int unit = first; unit < end; ++unit) {
      order[place[rank(unit, tile)]++] = unit * work.tiles + tile;
    }
  }
}

}  // namespace

std::vector<std::int32_t> work_order(const Work& work, std::span<const std::int32_t> counts) {
  std::vector<std::int32_t> order;
  if (work.tiles == 0) return order;
  order.reserve(static_cast<std::size_t>(work.units) * static_cast<std::size_t>(work.tiles));
  const std::int32_t max_count = *std::ranges::max_element(counts);
  for (int first = 0; first < work.units; first += work.section_units) {
    append_section(work, counts, first, std::min(first + work.section_units, work.units), max_count,
                   order);
  }
  return order;
}

std::int64_t makespan(const Work& work, std::span<const std::int32_t> counts,
                      std::span<const std::int32_t> order, std::int64_t tiles_per_block,
                      int concurrent_ctas, const cost::Platform& platform) {
  cost::ListSchedule<std::int64_t> schedule(concurrent_ctas);
  for (const std::int32_t item : order) {
    const std::int64_t blocks = count_of(work, counts, item / work.tiles, item % work.tiles);
    schedule.add(blocks * tiles_per_block + platform.mma.backward.cta_overhead_tiles);
  }
  return schedule.end();
}

Work BackwardWork::split(int parts) const {
  return {.units = heads_k * parts,
          .lists = lists,
          .tiles = tiles,
          .section_units = std::clamp(heads_in_cache / parts, 1, heads_k) * parts};
}

int head_parts(const BackwardWork& work, std::span<const std::int32_t> counts) {
  const auto end_of = [&](int parts) -> std::optional<std::int64_t> {
    const Work split = work.split(parts);
    if (std::int64_t{split.units} * split.tiles > kMaxSimulatedWaves * work.concurrent_ctas) {
      return std::nullopt;
    }
    const std::int64_t heads = work.group_size / parts;
    return makespan(split, counts, work_order(split, counts), heads * work.tiles_per_block,
                    work.concurrent_ctas, work.platform);
  };
  return mma::choose_head_parts(work.group_size, work.platform.mma.backward, end_of);
}

}  // namespace longca::fa2_sparse
