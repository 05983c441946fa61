#include "attention/adapters/block_form.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace longca {
namespace {

Mask blocks_over(std::int64_t queries, std::int64_t keys, std::vector<MaskSlice> slices) {
  const BlockLists lists{{0, queries}, {0, keys}, 1, {0, 1}, {0}};
  return Mask::from_blocks(queries, keys, std::move(slices), lists);
}

TEST(BlockForm, TellsWholeBlocksFromCutOnes) {
  const Mask full = blocks_over(8, 6, {{0, 8, 0, 6, MaskSliceType::full}});
  EXPECT_TRUE(keeps_whole_blocks(full));
  EXPECT_FALSE(keeps_causal_blocks(full));
  const Mask causal = blocks_over(8, 8, {{0, 8, 0, 8, MaskSliceType::causal}});
  EXPECT_FALSE(keeps_whole_blocks(causal));
  EXPECT_TRUE(keeps_causal_blocks(causal));
  // Causal, but its diagonal is not that of query q and key q.
  EXPECT_FALSE(keeps_causal_blocks(blocks_over(8, 9, {{0, 8, 0, 9, MaskSliceType::causal}})));
  const Mask half = blocks_over(8, 8, {{0, 4, 0, 8, MaskSliceType::full}});
  EXPECT_FALSE(keeps_whole_blocks(half));
  EXPECT_FALSE(keeps_causal_blocks(half));
}

TEST(BlockForm, MeasuresBlocks) {
  const std::array<std::int64_t, 4> even = {0, 128, 256, 300};
  EXPECT_TRUE(are_multiples_of(64, even));
  EXPECT_TRUE(are_multiples_of(128, even));
  EXPECT_FALSE(are_multiples_of(256, even));
  EXPECT_EQ(largest_block(even), 128);
  const std::array<std::int64_t, 3> longer_at_the_end = {0, 64, 300};
  EXPECT_TRUE(are_multiples_of(64, longer_at_the_end));
  EXPECT_EQ(largest_block(longer_at_the_end), 236);
}

}  // namespace
}  // namespace longca
