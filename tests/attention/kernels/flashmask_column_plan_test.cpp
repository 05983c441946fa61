#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <span>

#include "attention/kernels/flashmask/column_plan.h"
#include "attention/kernels/flashmask/flashmask_native.h"
#include "mask/generators.h"
#include "mask/oracle.h"

namespace longca::flashmask {
namespace {

using oracle::Dense;

/// A random mask that has column intervals, and them.
struct RandomColumns {
  Mask mask;
  ColumnIntervals intervals;
};

/// Slices of a random mask, or documents with what FlashMask's paper draws: every document sees
/// itself, causally or not, and some see what came before.
RandomColumns random_columns() {
  if (*rc::gen::arbitrary<bool>()) {
    const Mask mask = oracle::random_mask().mask;
    if (const auto intervals = column_intervals(mask, 0)) return {mask, *intervals};
  }
  const std::int64_t tokens = oracle::random_tokens();
  std::vector<MaskSlice> slices;
  for (std::int64_t begin = 0; begin < tokens;) {
    const std::int64_t end = std::min(begin + *rc::gen::inRange<std::int64_t>(1, 12), tokens);
    const bool last = end == tokens && *rc::gen::arbitrary<bool>();
    const MaskSliceType type = *rc::gen::element(MaskSliceType::full, MaskSliceType::causal);
    slices.push_back({begin, end, last ? 0 : begin, end, type});
    begin = end;
  }
  const Mask mask = Mask::from_slices(tokens, tokens, slices);
  return {mask, column_intervals(mask, 0).value()};
}

/// Whether an interval masks all, some or no cells of a tile.
struct Share {
  bool all = true;
  bool some = false;
};

Share share_of(std::span<const Column> columns, MaskedRows Column::*interval, Range rows,
               Range keys) {
  Share share;
  for (std::int64_t k = keys.begin; k < keys.end; ++k) {
    for (std::int64_t q = rows.begin; q < rows.end; ++q) {
      const bool masked =
          (columns[static_cast<std::size_t>(k)].*interval).contain(static_cast<std::int32_t>(q));
      share.all = share.all && masked;
      share.some = share.some || masked;
    }
  }
  return share;
}

TileState state_of(const TilePlan& plan, std::size_t block, std::int64_t row, std::int64_t tile_m,
                   std::int64_t q_tokens) {
  return classify(plan.bounds.at(block), static_cast<std::int32_t>(row),
                  static_cast<std::int32_t>(std::min(row + tile_m, q_tokens)));
}

RC_GTEST_PROP(FlashmaskColumns, MaskTheCellsThatTheMaskForbids, ()) {
  const RandomColumns random = random_columns();
  const auto tile_n = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto columns = padded_columns(random.intervals, tile_n);
  const Dense dense = oracle::dense_of(random.mask, 0);
  RC_ASSERT(static_cast<std::int64_t>(columns.size()) ==
            (dense.k_tokens + tile_n - 1) / tile_n * tile_n);
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(columns.size()); ++k) {
    for (std::int64_t q = 0; q < dense.q_tokens; ++q) {
      const bool allowed = k < dense.k_tokens && dense.at(q, k) != 0;
      const Column& column = columns[static_cast<std::size_t>(k)];
      const auto row = static_cast<std::int32_t>(q);
      RC_ASSERT((column.lt.contain(row) || column.ut.contain(row)) != allowed);
    }
  }
}

RC_GTEST_PROP(FlashmaskTiles, AreClassifiedAsTheirCellsSay, ()) {
  const RandomColumns random = random_columns();
  const Dense dense = oracle::dense_of(random.mask, 0);
  const auto tile_m = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto tile_n = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto columns = padded_columns(random.intervals, tile_n);
  const TilePlan plan = plan_tiles(columns, dense.q_tokens, tile_m, tile_n);
  for (std::size_t block = 0; block < plan.bounds.size(); ++block) {
    for (std::int64_t row = 0; row < dense.q_tokens; row += tile_m) {
      const TileState state = state_of(plan, block, row, tile_m, dense.q_tokens);
      const Range rows = {row, std::min(row + tile_m, dense.q_tokens)};
      const auto key = static_cast<std::int64_t>(block) * tile_n;
      const Share lt = share_of(columns, &Column::lt, rows, {key, key + tile_n});
      const Share ut = share_of(columns, &Column::ut, rows, {key, key + tile_n});
      RC_ASSERT(state.masked == (lt.all || ut.all));
      // The bounds of one column are its interval; those of more may span rows that none masks.
      RC_ASSERT(state.test_lt || !lt.some);
      RC_ASSERT(state.test_ut || !ut.some);
      if (tile_n == 1) RC_ASSERT(state.test_lt == lt.some);
      if (tile_n == 1) RC_ASSERT(state.test_ut == ut.some);
    }
  }
}

RC_GTEST_PROP(FlashmaskTiles, AreCountedAndOrderedAsTheKernelsVisitThem, ()) {
  const RandomColumns random = random_columns();
  const std::int64_t q_tokens = random.mask.q_tokens();
  const auto tile_m = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto tile_n = *rc::gen::inRange<std::int64_t>(1, 9);
  const TilePlan plan =
      plan_tiles(padded_columns(random.intervals, tile_n), q_tokens, tile_m, tile_n);
  const auto row_blocks = static_cast<std::size_t>((q_tokens + tile_m - 1) / tile_m);
  std::vector<std::int64_t> row_work(row_blocks, 0);
  std::vector<std::int64_t> column_work(plan.bounds.size(), 0);
  for (std::size_t i = 0; i < row_blocks; ++i) {
    for (std::size_t j = 0; j < plan.bounds.size(); ++j) {
      const TileState state =
          state_of(plan, j, static_cast<std::int64_t>(i) * tile_m, tile_m, q_tokens);
      row_work[i] += !state.masked;
      column_work[j] += !state.masked;
    }
  }
  const auto expect_descending = [](std::vector<std::int32_t> order,
                                    const std::vector<std::int64_t>& work) {
    RC_ASSERT(order.size() == work.size());
    for (std::size_t i = 1; i < order.size(); ++i) {
      RC_ASSERT(work.at(static_cast<std::size_t>(order[i - 1])) >=
                work.at(static_cast<std::size_t>(order[i])));
    }
    std::ranges::sort(order);
    for (std::size_t i = 0; i < order.size(); ++i) RC_ASSERT(order[i] == static_cast<int>(i));
  };
  expect_descending(plan.row_order, row_work);
  expect_descending(plan.column_order, column_work);
  for (std::size_t i = 0; i < column_work.size(); ++i) {
    RC_ASSERT(plan.column_tiles.at(i) ==
              column_work.at(static_cast<std::size_t>(plan.column_order[i])));
  }
}

TilePlan plan_with(std::vector<std::int64_t> column_tiles) {
  TilePlan plan;
  plan.column_tiles = std::move(column_tiles);
  return plan;
}

TEST(FlashmaskHeadParts, SplitAGroupAsFarAsTheScheduleGains) {
  const BackwardWork work{
      .group_size = 8, .heads_k = 8, .heads_in_cache = 64, .concurrent_ctas = 132};
  // Equal columns of 8K tokens: two parts fill the SMs as well as eight.
  EXPECT_EQ(head_parts(plan_with(std::vector<std::int64_t>(64, 128)), work), 2);
  // One column that all rows see is as long as all others on one SM.
  std::vector<std::int64_t> one_long(64, 2);
  one_long[0] = 128;
  EXPECT_EQ(head_parts(plan_with(one_long), work), 8);
  // Causal, 1K tokens: 64 columns of two to sixteen tiles for 132 SMs.
  EXPECT_EQ(head_parts(plan_with({16, 14, 12, 10, 8, 6, 4, 2}), work), 4);
  EXPECT_EQ(head_parts(plan_with({}), work), 2);
  // Where a CTA costs as much as many tiles, parts of the long column gain nothing.
  cost::Platform slow = cost::default_platform();
  slow.mma.backward.cta_overhead_tiles = 4096;
  EXPECT_EQ(head_parts(plan_with(one_long), {.platform = slow,
                                             .group_size = 8,
                                             .heads_k = 8,
                                             .heads_in_cache = 64,
                                             .concurrent_ctas = 132}),
            2);
  EXPECT_EQ(
      head_parts(plan_with({128, 1}), {.group_size = 1, .heads_k = 8, .concurrent_ctas = 132}), 1);
}

TEST(FlashmaskHeadParts, DivideTheGroup) {
  for (int group = 1; group <= 12; ++group) {
    for (std::int64_t most = 1; most <= 64; most *= 2) {
      const BackwardWork work{
          .group_size = group, .heads_k = 2, .heads_in_cache = 1, .concurrent_ctas = 16};
      EXPECT_EQ(group % head_parts(plan_with({most, 1, 1, 1}), work), 0);
    }
  }
}

Problem problem_of(const Mask& mask) {
  Problem problem;
  problem.tokens_q = mask.q_tokens();
  problem.tokens_k = mask.k_tokens();
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  return problem;
}

TEST(FlashmaskCanExpress, EveryStaticMaskOfTheTable) {
  for (const MaskTraits& traits : mask_table()) {
    MaskSpec spec;
    spec.name = traits.name;
    spec.tokens = 2048;
    spec.window = 200;
    spec.block_tokens = 100;
    const Mask mask = generate_mask(spec).mask;
    const Support support = flashmask_native_can_express(problem_of(mask), mask);
    EXPECT_EQ(support.ok(), !traits.uses_blocks) << traits.name << ": " << support.reason;
  }
}

TEST(FlashmaskCanExpress, NoColumnWithThreeMaskedIntervals) {
  const Mask mask = Mask::from_slices(
      50, 10, {{10, 20, 0, 10, MaskSliceType::full}, {30, 40, 0, 10, MaskSliceType::full}});
  const Support support = flashmask_native_can_express(problem_of(mask), mask);
  EXPECT_EQ(support.code, StatusCode::unsupported);
  EXPECT_NE(support.reason.find("at most two intervals of masked query rows"), std::string::npos)
      << support.reason;
}

}  // namespace
}  // namespace longca::flashmask
