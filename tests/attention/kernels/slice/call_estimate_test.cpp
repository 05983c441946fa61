#include "attention/kernels/slice/planner/call_estimate.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "mask/block_draw.h"
#include "mask/block_lists.h"
#include "mask/generators.h"

namespace longca::slice {
namespace {

constexpr cost::HeadShape kShape{64, 8, 128, 2};

Mask full_mask(std::int64_t rows, std::int64_t keys) {
  return Mask::from_slices(rows, keys, {{0, rows, 0, keys}});
}

/// 128 rows × 64 heads are 32 pairs of query tiles for 66 pairs of SMs, of 32 full tiles each.
TEST(CallEstimate, FullTilesTakeTheirCycles) {
  const cost::Platform& platform = cost::default_platform();
  const cost::SliceForwardCycles& rates = platform.slice.forward;
  const cost::ForwardCall& call = platform.call.forward;
  const double cycles = static_cast<double>(call.start_cycles + rates.pair_start_cycles) +
                        rates.pair_tile_share * static_cast<double>(32 * rates.full_tile_cycles);
  EXPECT_NEAR(estimate_forward(full_mask(128, 4096), kShape, platform).seconds,
              call.seconds_per_call + cycles / call.cycles_per_second, 1e-12);
}

TEST(CallEstimate, APartialWaveTakesAsLongAsAWholeOne) {
  const cost::Platform& platform = cost::default_platform();
  const double one = estimate_forward(full_mask(128, 4096), kShape, platform).seconds;
  const double two = estimate_forward(full_mask(256, 4096), kShape, platform).seconds;
  const double three = estimate_forward(full_mask(384, 4096), kShape, platform).seconds;
  EXPECT_DOUBLE_EQ(one, two);  // 32 and 64 pairs of CTAs on 66
  const double fixed = platform.call.forward.seconds_per_call;
  EXPECT_NEAR((three - fixed) / (two - fixed), 2, 1e-9);
}

/// With 32K keys the K and V of one head fill half of L2: the heads' longest tiles come one after
/// the other, and the last head's ends alone.
TEST(CallEstimate, HeadsThatDoNotShareTheCacheEndLater) {
  constexpr std::int64_t kKeys = 32 * 1024;
  const Mask mask =
      Mask::from_slices(kKeys, kKeys, {{0, kKeys - 128, 0, 128}, {kKeys - 128, kKeys, 0, kKeys}});
  cost::Platform platform = cost::default_platform();
  const double apart = estimate_forward(mask, kShape, platform).seconds;
  platform.device.cache_bytes *= 100;
  EXPECT_GT(apart, 1.1 * estimate_forward(mask, kShape, platform).seconds);
}

/// Of 64 blocks of keys one row group sees the even ones, the other the odd ones: 16 tiles each, in
/// turn. One query tile for each of 64 heads, on more SMs.
TEST(CallEstimate, TilesInTurnTakeTheirShare) {
  BlockLists blocks{.q_bounds = {0, 64, 128},
                    .k_bounds = uniform_bounds(4096, 64),
                    .offsets = {0, 32, 64},
                    .indices = {}};
  for (int i = 0; i < 64; ++i) blocks.indices.push_back(i < 32 ? 2 * i : 2 * (i - 32) + 1);
  const Mask mask = Mask::from_blocks(128, 4096, {{0, 128, 0, 4096}}, blocks);
  const cost::Platform& platform = cost::default_platform();
  const cost::SliceForwardCycles& rates = platform.slice.forward;
  const cost::ForwardCall& call = platform.call.forward;
  const double tiles = 32 * rates.in_turn_tile_share * static_cast<double>(rates.full_tile_cycles);
  const double cycles = static_cast<double>(call.start_cycles + rates.tile_start_cycles) + tiles;
  EXPECT_NEAR(estimate_forward(mask, {64, 64, 128, 2}, platform).seconds,
              call.seconds_per_call + cycles / call.cycles_per_second, 1e-9);
}

TEST(CallEstimate, BackwardCountsRowsAndTheLastCtasEnd) {
  cost::Platform platform = cost::default_platform();
  const Mask mask = full_mask(1024, 1024);
  const TransposedLists lists = make_transposed_lists(
      mask, choose_backward_pack(mask, 8), {.platform = platform, .heads_q = 64, .heads_k = 8});
  const cost::BackwardCall& call = platform.call.backward;
  const double cycles = lists.end_cycles + call.chunk_item_cycles * lists.chunk_items;
  const double rows = 1024 * 14.0 * 64 * 128 / call.row_bytes_per_second;
  EXPECT_NEAR(estimate_backward(mask, kShape, platform).seconds,
              call.seconds_per_call + rows + cycles / call.cycles_per_second, 1e-12);
  EXPECT_GE(lists.end_cycles, 1024.0 / 8 * 8 * 8 * 3400 / 132);  // 8 × 128 visits of 8 heads
}

/// Under block lists alone: elsewhere one warpgroup mostly has nothing else to do.
TEST(CallEstimate, VisitsOfHalvesTakeLess) {
  cost::Platform platform = cost::default_platform();
  const auto saved = [&](const Mask& mask) {
    platform.slice.backward.half_visit_share = 1;
    const double whole = estimate_backward(mask, kShape, platform).seconds;
    platform.slice.backward.half_visit_share = 0.5;
    return whole - estimate_backward(mask, kShape, platform).seconds;
  };
  const auto lists_of = [&](const Mask& mask) {
    return make_transposed_lists(
        mask, choose_backward_pack(mask, 8),
        {.platform = platform, .heads_q = 64, .heads_k = 8, .tells_halves = true});
  };
  MaskSpec spec;
  spec.name = "block_sparse";
  spec.tokens = 4096;
  spec.heads_q = 64;
  spec.heads_k = 8;
  spec.block = 64;
  const Mask mask = generate_mask(spec).mask;
  const TransposedLists lists = lists_of(mask);
  std::int64_t halves = 0;
  for (const QuerySegment& segment : lists.segments) {
    halves += seen_halves(segment.pattern) != 3 ? segment.count : 0;
  }
  ASSERT_GT(halves, 0);
  const auto visit = static_cast<double>(platform.slice.backward.query_tile_cycles);
  EXPECT_NEAR(saved(mask),
              static_cast<double>(halves) * 8 / lists.pack * visit / 2 / 132 /
                  platform.call.backward.cycles_per_second,
              1e-12);
  spec.name = "shared_question";
  const Mask question = generate_mask(spec).mask;
  ASSERT_TRUE(lists_of(question).tells_halves);
  EXPECT_EQ(saved(question), 0);
}

TEST(CallEstimate, SplitKeyTilesAreSummedInFloat32) {
  const cost::Platform& platform = cost::default_platform();
  const Mask mask = full_mask(2048, 2048);
  const TransposedLists lists = make_transposed_lists(
      mask, choose_backward_pack(mask, 8), {.platform = platform, .heads_q = 64, .heads_k = 8});
  ASSERT_FALSE(lists.split_keys.empty());
  EXPECT_EQ(estimate_backward(mask, kShape, platform).sum_bytes,
            static_cast<double>(lists.split_keys.size()) * 128 * 8 * 2 * 128 * 4);
  EXPECT_EQ(estimate_backward(full_mask(0, 128), kShape, platform).sum_bytes, 0);
}

TEST(CallEstimate, SumsOfWiderHeadsHaveRoomForTheKeysOfTheirTiles) {
  const cost::Platform& platform = cost::default_platform();
  const Mask mask = full_mask(4096, 4096);
  const TransposedLists lists =
      make_transposed_lists(mask, choose_backward_pack(mask, 8),
                            {.platform = platform,
                             .heads_q = 64,
                             .heads_k = 8,
                             .chunk_visits = backward_chunk_visits(platform, {256, 256}),
                             .tile_keys = 64});
  ASSERT_FALSE(lists.split_keys.empty());
  EXPECT_EQ(estimate_backward(mask, {64, 8, 256, 2}, platform).sum_bytes,
            static_cast<double>(lists.split_keys.size()) * 64 * 8 * 2 * 256 * 4);
}

/// Their key tiles have half of the keys: twice as many visits, of as many FLOPs as at 128.
TEST(CallEstimate, TwiceTheDimensionsTakeTwiceTheTime) {
  const cost::Platform& platform = cost::default_platform();
  const Mask mask = full_mask(8192, 8192);
  const double narrow = estimate_backward(mask, kShape, platform).seconds;
  const double wide = estimate_backward(mask, {64, 8, 256, 2}, platform).seconds;
  EXPECT_GT(wide, 1.7 * narrow);
  EXPECT_LT(wide, 2.3 * narrow);
}

TEST(TransposedLists, ChunksOfWiderRowsHaveAsManyBytes) {
  const cost::Platform& platform = cost::default_platform();
  const std::int64_t visits = platform.slice.backward.chunk_visits;
  EXPECT_EQ(backward_chunk_visits(platform, {64, 64}), visits);
  EXPECT_EQ(backward_chunk_visits(platform, {128, 128}), visits);
  EXPECT_EQ(backward_chunk_visits(platform, {192, 128}), visits * 4 / 5);
  EXPECT_EQ(backward_chunk_visits(platform, {256, 256}), visits / 2);
}

TEST(CallEstimate, FewHeadsLeaveSmsIdle) {
  const cost::Platform& platform = cost::default_platform();
  const Mask mask = full_mask(2048, 2048);
  for (const auto estimate : {estimate_forward, estimate_backward}) {
    const CallEstimate all = estimate(mask, kShape, platform);
    const CallEstimate eighth = estimate(mask, {8, 1, 128, 2}, platform);
    EXPECT_GT(eighth.seconds, all.seconds / 8);
    EXPECT_LT(eighth.seconds, all.seconds);
    EXPECT_LE(all.busy_seconds, all.cycle_seconds);
    EXPECT_LT(all.cycle_seconds, all.seconds);
  }
}

/// 64 pairs of query tiles for 66 pairs of SMs: all but two have work until the end.
TEST(CallEstimate, SmsAreBusyWhereTheyHaveTiles) {
  const CallEstimate call =
      estimate_forward(full_mask(256, 4096), kShape, cost::default_platform());
  EXPECT_NEAR(call.busy_seconds / call.cycle_seconds, 64.0 / 66, 1e-9);
}

/// One row group of 64 rows of a document's first 64 sees nothing of its keys; both do of the last.
TEST(CallEstimate, TilesThatMaskBothRowGroupsTakeLonger) {
  cost::Platform platform = cost::default_platform();
  const cost::HeadShape one{8, 8, 128, 2};  // no pack: 128 tokens a query tile
  const auto extra = [&](const Mask& mask) {
    platform.call.forward.both_groups_cycles = 1;
    const double without = estimate_forward(mask, one, platform).busy_seconds;
    platform.call.forward.both_groups_cycles = 1001;
    const double with = estimate_forward(mask, one, platform).busy_seconds;
    return (with - without) * platform.call.forward.cycles_per_second * 132 / 8 / 1000;
  };
  EXPECT_EQ(extra(full_mask(128, 4096)), 0);
  const Mask half = Mask::from_slices(128, 128, {{0, 64, 0, 100}});
  EXPECT_NEAR(extra(half), 0, 1e-9);
  const Mask both = Mask::from_slices(128, 128, {{0, 128, 0, 100}});
  EXPECT_NEAR(extra(both), 1, 1e-9);
}

TEST(CallEstimate, BackwardVisitsUnderAMaskTakeLonger) {
  cost::Platform platform = cost::default_platform();
  const Mask causal = Mask::from_slices(1024, 1024, {{0, 1024, 0, 1024, MaskSliceType::causal}});
  const auto cycles = [&](const Mask& mask, double each) {
    platform.call.backward.partial_visit_cycles = each;
    return estimate_backward(mask, kShape, platform).cycle_seconds *
           platform.call.backward.cycles_per_second;
  };
  EXPECT_EQ(cycles(full_mask(1024, 1024), 1), cycles(full_mask(1024, 1024), 1001));
  // Of each of 8 key tiles of 128 keys the 16 query tiles on the diagonal (8 tokens of 8 heads).
  EXPECT_NEAR(cycles(causal, 1001) - cycles(causal, 1), 1000.0 * 8 * 16 * 8 / 132, 1e-3);
}

TEST(CallEstimate, NoRowsTakeNoTime) {
  const Mask none = Mask::from_slices(0, 128, {});
  EXPECT_EQ(estimate_forward(none, kShape, cost::default_platform()).seconds, 0);
  EXPECT_EQ(estimate_backward(none, kShape, cost::default_platform()).seconds, 0);
}

TEST(ForwardSectionHeads, DivideTheHeads) {
  EXPECT_EQ(forward_section_heads(8192, {128, 128}, 8, 50 << 20), 4);  // 6 fit
  EXPECT_EQ(forward_section_heads(1 << 20, {128, 128}, 8, 50 << 20), 1);
  EXPECT_EQ(forward_section_heads(0, {128, 128}, 8, 50 << 20), 8);
}

}  // namespace
}  // namespace longca::slice
