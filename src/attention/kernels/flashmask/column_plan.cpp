#include "attention/kernels/flashmask/column_plan.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace longca::flashmask {
namespace {

/// Widens the bounds of a block by one column's interval.
void widen(IntervalBounds& bounds, MaskedRows rows) {
  const bool empty = rows.start >= rows.end;
  bounds.start_max = std::max(bounds.start_max, empty ? INT32_MAX : rows.start);
  bounds.end_min = std::min(bounds.end_min, empty ? 0 : rows.end);
  if (empty) return;
  bounds.start_min = std::min(bounds.start_min, rows.start);
  bounds.end_max = std::max(bounds.end_max, rows.end);
}

std::vector<BlockBounds> bounds_of(std::span<const Column> columns, std::int64_t tile_n) {
  std::vector<BlockBounds> bounds(columns.size() / static_cast<std::size_t>(tile_n));
  for (std::size_t k = 0; k < columns.size(); ++k) {
    BlockBounds& block = bounds[k / static_cast<std::size_t>(tile_n)];
    widen(block.lt, columns[k].lt);
    widen(block.ut, columns[k].ut);
  }
  return bounds;
}

/// The row blocks inside the rows that every column of a key block masks: those that `classify`
/// calls masked.
Range masked_blocks(const IntervalBounds& bounds, std::int64_t q_tokens, std::int64_t tile_m) {
  const std::int64_t row_blocks = (q_tokens + tile_m - 1) / tile_m;
  const std::int64_t begin =
      std::min<std::int64_t>((std::int64_t{bounds.start_max} + tile_m - 1) / tile_m, row_blocks);
  const std::int64_t end = bounds.end_min >= q_tokens ? row_blocks : bounds.end_min / tile_m;
  return {begin, std::max(begin, end)};
}

/// Indices of `work`, largest first; equal ones in ascending order.
std::vector<std::int32_t> descending(std::span<const std::int64_t> work) {
  std::vector<std::int32_t> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
    return work[static_cast<std::size_t>(a)] > work[static_cast<std::size_t>(b)];
  });
  return order;
}

/// Cost of a CTA besides its tiles, in tiles: loading K and V, adding dK and dV (measured on an
/// H200).
constexpr std::int64_t kGroupTiles = 2;

/// The time, in tiles, until the last CTA ends if each starts as soon as another ends, in the
/// kernel's order (work_order.cuh).
std::int64_t makespan(const TilePlan& plan, const BackwardWork& work, int parts) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_at(
      std::greater<>{},
      std::vector<std::int64_t>(static_cast<std::size_t>(work.concurrent_ctas), 0));
  const int heads = work.group_size / parts;
  const int section = work.section_heads(parts);
  std::int64_t last = 0;
  for (int first = 0; first < work.heads_k; first += section) {
    const int groups = std::min(section, work.heads_k - first) * parts;
    for (const std::int64_t tiles : plan.column_tiles) {
      for (int group = 0; group < groups; ++group) {
        const std::int64_t end = free_at.top() + tiles * heads + kGroupTiles;
        free_at.pop();
        free_at.push(end);
        last = std::max(last, end);
      }
    }
  }
  return last;
}

}  // namespace

std::vector<Column> padded_columns(const ColumnIntervals& intervals, std::int64_t tile_n) {
  const std::size_t count = intervals.lt_start.size();
  const auto width = static_cast<std::size_t>(tile_n);
  std::vector<Column> columns((count + width - 1) / width * width, Column{{0, INT32_MAX}, {0, 0}});
  for (std::size_t k = 0; k < count; ++k) {
    columns[k] = {{intervals.lt_start[k], intervals.lt_end[k]},
                  {intervals.ut_start[k], intervals.ut_end[k]}};
  }
  return columns;
}

TilePlan plan_tiles(std::span<const Column> columns, std::int64_t q_tokens, std::int64_t tile_m,
                    std::int64_t tile_n) {
  TilePlan plan;
  plan.bounds = bounds_of(columns, tile_n);
  const std::int64_t row_blocks = (q_tokens + tile_m - 1) / tile_m;
  // Tiles to visit = all − those that either interval masks, per row block by a difference array.
  std::vector<std::int64_t> change(static_cast<std::size_t>(row_blocks) + 1, 0);
  change[0] = static_cast<std::int64_t>(plan.bounds.size());
  std::vector<std::int64_t> column_work(plan.bounds.size(), row_blocks);
  for (std::size_t block = 0; block < plan.bounds.size(); ++block) {
    const auto skip = [&](std::int64_t begin, std::int64_t end) {
      if (begin >= end) return;
      --change[static_cast<std::size_t>(begin)];
      ++change[static_cast<std::size_t>(end)];
      column_work[block] -= end - begin;
    };
    const Range lt = masked_blocks(plan.bounds[block].lt, q_tokens, tile_m);
    const Range ut = masked_blocks(plan.bounds[block].ut, q_tokens, tile_m);
    skip(lt.begin, lt.end);
    skip(ut.begin, std::min(ut.end, lt.begin));  // tiles that both mask count once
    skip(std::max(ut.begin, lt.end), ut.end);
  }
  std::vector<std::int64_t> row_work(static_cast<std::size_t>(row_blocks));
  std::partial_sum(change.begin(), change.end() - 1, row_work.begin());
  plan.row_order = descending(row_work);
  plan.column_order = descending(column_work);
  for (const std::int32_t block : plan.column_order) {
    plan.column_tiles.push_back(column_work[static_cast<std::size_t>(block)]);
  }
  return plan;
}

int head_parts(const TilePlan& plan, const BackwardWork& work) {
  if (work.group_size == 1) return 1;
  std::vector<std::pair<int, std::int64_t>> candidates;
  std::int64_t shortest = INT64_MAX;
  for (int parts = 2; parts <= work.group_size; ++parts) {
    if (work.group_size % parts != 0) continue;
    candidates.emplace_back(parts, makespan(plan, work, parts));
    shortest = std::min(shortest, candidates.back().second);
  }
  const auto good = std::ranges::find_if(
      candidates, [&](const auto& candidate) { return candidate.second * 100 <= shortest * 103; });
  return good->first;
}

}  // namespace longca::flashmask
