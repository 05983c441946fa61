#include "cost/kernel_cost.h"

#include <gtest/gtest.h>

namespace longca::cost {
namespace {

const Platform& h200() {
  return default_platform();
}

TEST(KernelCost, CountsTheFlopsOfACell) {
  const HeadShape shape = {64, 8, 128, 2};
  EXPECT_EQ(flops_per_cell(shape, Pass::forward), 4 * 64 * 128);
  EXPECT_EQ(flops_per_cell(shape, Pass::backward), 2.5 * 4 * 64 * 128);
}

TEST(KernelCost, CallsTakeTheirCellsRowsAndStart) {
  const CallCost call = slice_call(h200(), {}, Pass::backward);
  EXPECT_DOUBLE_EQ(call.cells(1000, 3), 1000 + 3 * 150);
  EXPECT_DOUBLE_EQ(call.seconds(1e6), 1e6 * 81920 / 558e12 + 70e-6);
  EXPECT_EQ(call.seconds(0), 0);
  EXPECT_DOUBLE_EQ(slice_half_heads_call(h200(), {}).seconds(1e6), 1e6 * 81920 / 558e12 + 140e-6);
  EXPECT_DOUBLE_EQ(slice_call(h200(), {}, Pass::forward).seconds(1), 32768 / 700e12 + 15e-6);
  EXPECT_DOUBLE_EQ(any_call(h200(), {}).seconds(1), 32768 / 600e12 + 10e-6);
}

TEST(KernelCost, FollowsHeadsDimensionAndElementSize) {
  const HeadShape whole = {64, 8, 128, 2};
  for (const HeadShape half : {HeadShape{32, 8, 128, 2}, HeadShape{64, 8, 64, 2}}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      EXPECT_DOUBLE_EQ(2 * slice_call(h200(), half, pass).seconds_per_cell,
                       slice_call(h200(), whole, pass).seconds_per_cell);
    }
    EXPECT_DOUBLE_EQ(2 * merge_seconds(h200(), half, 10), merge_seconds(h200(), whole, 10));
    EXPECT_DOUBLE_EQ(2 * row_term_seconds(h200(), half, 10), row_term_seconds(h200(), whole, 10));
  }
  const HeadShape floats = {64, 8, 128, 4};
  EXPECT_DOUBLE_EQ(merge_seconds(h200(), floats, 10), 2 * merge_seconds(h200(), whole, 10));
  EXPECT_EQ(floats.key_bytes(), 2 * whole.key_bytes());
  EXPECT_EQ(floats.key_sum_bytes(), whole.key_sum_bytes());
}

TEST(KernelCost, RoundingReadsSumsAndWritesOwnKeys) {
  const double call = h200().kernel.any.seconds_per_call;
  const double sum = memory_seconds(h200(), 2 * 8 * 128 * 4);
  EXPECT_DOUBLE_EQ(rounding_seconds(h200(), {}, 0, 100), call + 100 * sum);
  EXPECT_DOUBLE_EQ(rounding_seconds(h200(), {}, 100, 0), call + 150 * sum);
  // A float32 gradient is as large as its sum.
  EXPECT_DOUBLE_EQ(rounding_seconds(h200(), {64, 8, 128, 4}, 0, 100), call + 100 * sum);
  EXPECT_DOUBLE_EQ(rounding_seconds(h200(), {64, 8, 128, 4}, 100, 0), call + 200 * sum);
}

}  // namespace
}  // namespace longca::cost
