#include <gtest/gtest.h>

#include <cstdint>

#include "attention/kernels/slice/slice.h"
#include "mask/mask.h"

namespace longca {
namespace {

/// Every head's list keeps the one block.
Mask mask_of_lists(int heads) {
  BlockLists blocks{
      .q_bounds = {0, 64}, .k_bounds = {0, 64}, .heads = heads, .offsets = {}, .indices = {}};
  for (int i = 0; i <= heads; ++i) blocks.offsets.push_back(i);
  blocks.indices.assign(static_cast<std::size_t>(heads), 0);
  return Mask::from_blocks(64, 64, {{0, 64, 0, 64, MaskSliceType::full}}, blocks);
}

TEST(SliceHeadLists, AreRefusedWhereTheirProductPasses32Bits) {
  Problem problem;
  problem.heads_q = problem.heads_k = 1 << 30;
  EXPECT_TRUE(check_head_lists(problem, mask_of_lists(1)).ok());
  const Support two = check_head_lists(problem, mask_of_lists(2));
  EXPECT_EQ(two.code, StatusCode::unsupported);
  EXPECT_EQ(two.reason,
            "slice takes 1073741824 query heads with block lists of 1 at most, not of 2");
  problem.heads_q = problem.heads_k = INT32_MAX;
  EXPECT_TRUE(check_head_lists(problem, mask_of_lists(1)).ok());
  problem.heads_q = problem.heads_k = 1 << 16;
  EXPECT_TRUE(check_head_lists(problem, mask_of_lists(1 << 14)).ok());
  EXPECT_FALSE(check_head_lists(problem, mask_of_lists(1 << 15)).ok());
}

}  // namespace
}  // namespace longca
