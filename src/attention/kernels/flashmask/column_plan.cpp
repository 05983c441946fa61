#include "attention/kernels/flashmask/column_plan.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "attention/absent_kernel.h"
#include "attention/kernels/common/mma/head_parts.h"
#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/flashmask/flashmask_native.h"
#include "core/rounding.h"
#include "cost/schedule.h"

namespace longca::flashmask {
namespace {

/// Extends a block's bounds by one column's interval.
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

/// The row blocks within the rows that every column of a key block masks, as `classify` decides.
Range masked_blocks(const IntervalBounds& bounds, std::int64_t q_tokens, std::int64_t tile_m) {
  const std::int64_t row_blocks = ceil_div(q_tokens, tile_m);
  const std::int64_t begin = std::min(ceil_div(bounds.start_max, tile_m), row_blocks);
  const std::int64_t end = bounds.end_min >= q_tokens ? row_blocks : bounds.end_min / tile_m;
  return {begin, std::max(begin, end)};
}

/// Indices of `work` by descending work, stable.
std::vector<std::int32_t> descending(std::span<const std::int64_t> work) {
  std::vector<std::int32_t> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
    return work[static_cast<std::size_t>(a)] > work[static_cast<std::size_t>(b)];
  });
  return order;
}

/// Time in tiles until the last CTA ends, with CTAs in launch order (work_items.cuh), each starting
/// as soon as one of `concurrent_ctas` ends.
std::int64_t longest_cta(const TilePlan& plan, const BackwardWork& work, int parts) {
  cost::ListSchedule<std::int64_t> schedule(work.concurrent_ctas);
  const int heads = work.group_size / parts;
  const int section = work.section_heads(parts);
  for (int first = 0; first < work.heads_k; first += section) {
    const int groups = std::min(section, work.heads_k - first) * parts;
    for (const std::int64_t tiles : plan.column_tiles) {
      for (int group = 0; group < groups; ++group) {
        schedule.add(tiles * heads + work.platform.mma.backward.cta_overhead_tiles);
      }
    }
  }
  return schedule.end();
}

}  // namespace

std::vector<Column> padded_columns(const ColumnIntervals& intervals, std::int64_t tile_n) {
  const std::size_t count = intervals.lt_start.size();
  const auto width = static_cast<std::size_t>(tile_n);
  std::vector<Column> columns(round_up(count, width), Column{{0, INT32_MAX}, {0, 0}});
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
  const std::int64_t row_blocks = ceil_div(q_tokens, tile_m);
  // Tiles to visit per row block = all − those that an interval masks, by a difference array.
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
    skip(ut.begin, std::min(ut.end, lt.begin));  // without the rows that both mask
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
  return mma::choose_head_parts(work.group_size, work.platform.mma.backward, [&](int parts) {
    return std::optional(longest_cta(plan, work, parts));
  });
}

}  // namespace longca::flashmask

namespace longca {

Capabilities flashmask_native_capabilities() {
  Capabilities can;
  can.name = "flashmask_native";
  can.description = "FlashMask's column-wise mask intervals over FlashAttention-2 tiles";
  can.origin = "here";
  can.device = DeviceKind::cuda;
  can.min_architecture = 80;
  mma::set_instances(can, mma::kOtherInstances);
  can.block_masks = false;
  can.accumulate = false;
  can.longest_first = LongestFirst::always;
  can.backward_bytes = {.per_q = 4, .per_row = 8, .grouped_per_k = 8};
  return can;
}

Support flashmask_native_can_express(const Problem& problem, const Mask& mask) {
  static const Capabilities capabilities = flashmask_native_capabilities();
  if (Support support = check_problem(capabilities, problem, mask); !support.ok()) return support;
  if (!column_intervals(mask, 0)) {
    return Support::unsupported(
        "flashmask_native describes each key column by at most two intervals of masked query rows, "
        "and a column of this mask has more");
  }
  return {};
}

#ifndef LONGCA_WITH_CUDA
std::unique_ptr<Kernel> make_flashmask_native() {
  return std::make_unique<AbsentKernel>(flashmask_native_capabilities(), "",
                                        flashmask_native_can_express);
}
#endif

}  // namespace longca
