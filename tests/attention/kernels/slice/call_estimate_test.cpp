#include "attention/kernels/slice/planner/call_estimate.h"

#include <gtest/gtest.h>

#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/planner/transposed_lists.h"

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
  EXPECT_NEAR(forward_seconds(full_mask(128, 4096), kShape, platform),
              call.seconds_per_call + cycles / call.cycles_per_second, 1e-12);
}

TEST(CallEstimate, APartialWaveTakesAsLongAsAWholeOne) {
  const cost::Platform& platform = cost::default_platform();
  const double one = forward_seconds(full_mask(128, 4096), kShape, platform);
  const double two = forward_seconds(full_mask(256, 4096), kShape, platform);
  const double three = forward_seconds(full_mask(384, 4096), kShape, platform);
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
  const double apart = forward_seconds(mask, kShape, platform);
  platform.device.cache_bytes *= 100;
  EXPECT_GT(apart, 1.1 * forward_seconds(mask, kShape, platform));
}

TEST(CallEstimate, BackwardCountsRowsAndTheLastCtasEnd) {
  cost::Platform platform = cost::default_platform();
  const Mask mask = full_mask(1024, 1024);
  const TransposedLists lists = make_transposed_lists(
      mask, choose_backward_pack(mask, 8), {.platform = platform, .heads_q = 64, .heads_k = 8});
  const cost::BackwardCall& call = platform.call.backward;
  const double cycles = lists.end_cycles + call.chunk_item_cycles * lists.chunk_items;
  const double rows = 1024 * 14.0 * 64 * 128 / call.row_bytes_per_second;
  EXPECT_NEAR(backward_seconds(mask, kShape, platform),
              call.seconds_per_call + rows + cycles / call.cycles_per_second, 1e-12);
  EXPECT_GE(lists.end_cycles, 1024.0 / 8 * 8 * 8 * 3400 / 132);  // 8 × 128 visits of 8 heads
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
  const double narrow = backward_seconds(mask, kShape, platform);
  const double wide = backward_seconds(mask, {64, 8, 256, 2}, platform);
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
  for (const auto estimate : {forward_seconds, backward_seconds}) {
    const double all = estimate(mask, kShape, platform);
    const double eighth = estimate(mask, {8, 1, 128, 2}, platform);
    EXPECT_GT(eighth, all / 8);
    EXPECT_LT(eighth, all);
  }
}

TEST(CallEstimate, NoRowsTakeNoTime) {
  const Mask none = Mask::from_slices(0, 128, {});
  EXPECT_EQ(forward_seconds(none, kShape, cost::default_platform()), 0);
  EXPECT_EQ(backward_seconds(none, kShape, cost::default_platform()), 0);
}

TEST(ForwardSectionHeads, DivideTheHeads) {
  EXPECT_EQ(forward_section_heads(8192, {128, 128}, 8, 50 << 20), 4);  // 6 fit
  EXPECT_EQ(forward_section_heads(1 << 20, {128, 128}, 8, 50 << 20), 1);
  EXPECT_EQ(forward_section_heads(0, {128, 128}, 8, 50 << 20), 8);
}

}  // namespace
}  // namespace longca::slice
