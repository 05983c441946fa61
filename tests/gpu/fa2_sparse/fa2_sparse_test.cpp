#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attention/kernels/block_sparse_fa2/fa2_sparse_native.h"
#include "gpu/kernel_test.h"
#include "mask/block_draw.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

Mask mask_of(std::int64_t tokens, int lists, std::int64_t block, double density) {
  return Mask::from_blocks(
      tokens, tokens, {{0, tokens, 0, tokens, MaskSliceType::full}},
      draw_blocks({uniform_bounds(tokens, block), uniform_bounds(tokens, block), lists, density},
                  kSeed));
}

class Fa2Sparse : public KernelTest {
 protected:
  Fa2Sparse() { kernel_ = make_fa2_sparse_native(); }
};

TEST_F(Fa2Sparse, BlocksLengthsAndDensities) {
  for (const std::int64_t block : {64, 128, 192, 256}) {
    for (const std::int64_t tokens : {1, 65, 333, 1000}) {
      for (const double density : {0.1, 0.5, 1.0}) {
        expect_right(problem_of(tokens, tokens, 4, 2), mask_of(tokens, 2, block, density),
                     std::to_string(block) + " of " + std::to_string(tokens) + " at " +
                         std::to_string(density));
      }
    }
  }
}

TEST_F(Fa2Sparse, ListsPerKvHeadPerQueryHeadAndOneForAll) {
  const struct { int heads_q, heads_k; } shapes[] = {{8, 1}, {8, 2}, {4, 4}, {6, 2}, {5, 1}};
  for (const auto& shape : shapes) {
    for (const int lists : {1, shape.heads_k, shape.heads_q}) {
      for (const std::int64_t block : {64, 128}) {
        expect_right(problem_of(500, 500, shape.heads_q, shape.heads_k),
                     mask_of(500, lists, block, 0.4),
                     std::to_string(shape.heads_q) + ":" + std::to_string(shape.heads_k) + ", " +
                         std::to_string(lists) + " lists of blocks of " + std::to_string(block));
      }
    }
  }
}

TEST_F(Fa2Sparse, CausalAndWindowsUnderBlocks) {
  for (const std::int64_t block : {64, 128}) {
    const std::int64_t q = 500;
    const std::int64_t k = 640;
    const BlockLists lists =
        draw_blocks({uniform_bounds(q, block), uniform_bounds(k, block), 2, 0.6}, kSeed);
    const auto cut = [&](std::vector<MaskSlice> slices) {
      return Mask::from_blocks(q, k, std::move(slices), lists);
    };
    const Problem problem = problem_of(q, k, 4, 2);
    expect_right(problem, cut({{0, q, 0, k, MaskSliceType::causal}}), "causal");
    expect_right(problem, cut({{0, q, 0, k, MaskSliceType::bi_causal}}), "a window of both");
    expect_right(problem, cut({{0, q, 0, k, MaskSliceType::full}}), "full");
    expect_right(problem, cut({}), "no slices");
  }
}

TEST_F(Fa2Sparse, RowsWithoutKeysAndKeysWithoutRows) {
  // Query blocks 1 and 3 keep nothing; key block 2 is kept by nobody.
  BlockLists lists;
  lists.q_bounds = uniform_bounds(450, 128);
  lists.k_bounds = uniform_bounds(450, 128);
  lists.heads = 2;
  lists.offsets = {0, 2, 2, 4, 4, 5, 5, 6, 6};
  lists.indices = {0, 1, 0, 3, 3, 1};
  const Mask mask = Mask::from_blocks(450, 450, {{0, 450, 0, 450, MaskSliceType::full}}, lists);
  expect_right(problem_of(450, 450, 4, 2), mask, "empty rows");
  lists.offsets = std::vector<std::int64_t>(9, 0);
  lists.indices = {};
  expect_right(problem_of(450, 450, 4, 2),
               Mask::from_blocks(450, 450, {{0, 450, 0, 450, MaskSliceType::full}}, lists),
               "nothing");
}

TEST_F(Fa2Sparse, NoQueriesOrNoKeys) {
  const auto empty = [](std::int64_t q, std::int64_t k) {
    return Mask::from_blocks(
        q, k, {}, draw_blocks({uniform_bounds(q, 128), uniform_bounds(k, 128), 1, 0.5}, kSeed));
  };
  expect_right(problem_of(0, 65, 2, 1), empty(0, 65), "no queries");
  expect_right(problem_of(65, 0, 2, 1), empty(65, 0), "no keys");
}

TEST_F(Fa2Sparse, QueryAndKeyBlocksOfDifferentLengths) {
  const struct { std::int64_t q, k; } blocks[] = {{64, 128}, {128, 64}, {256, 192}};
  for (const auto& block : blocks) {
    const Mask mask = Mask::from_blocks(
        600, 700, {{0, 600, 0, 700, MaskSliceType::full}},
        draw_blocks({uniform_bounds(600, block.q), uniform_bounds(700, block.k), 2, 0.5}, kSeed));
    expect_right(problem_of(600, 700, 4, 2), mask,
                 std::to_string(block.q) + " × " + std::to_string(block.k));
  }
}

TEST_F(Fa2Sparse, ListsLongerThanWhatACtaHoldsAtOnce) {
  // More than 1024 tiles of 64 tokens: lists are walked in parts.
  const std::int64_t tokens = 66000;
  const Mask mask = Mask::from_blocks(
      tokens, tokens, {{0, tokens, 0, tokens, MaskSliceType::full}},
      draw_blocks({uniform_bounds(tokens, 64), uniform_bounds(tokens, 64), 1, 0.03}, kSeed));
  expect_right_there(problem_of(tokens, tokens, 2, 1), mask, "66000 tokens");
}

TEST_F(Fa2Sparse, EightThousandTokens) {
  for (const std::int64_t block : {64, 128}) {
    expect_right_there(problem_of(8192, 8192, 64, 8), mask_of(8192, 8, block, 0.5), "64:8");
    expect_right_there(problem_of(8192, 8192, 16, 16), mask_of(8192, 16, block, 0.2), "16:16");
  }
}

TEST_F(Fa2Sparse, SmallerTilesWhereSharedMemoryIsScarce) {
  kernel_ = make_fa2_sparse_native(163 << 10);  // compute capability 8.0
  expect_right(problem_of(1000, 1000, 8, 2), mask_of(1000, 2, 128, 0.5), "128 tokens in two tiles");
  expect_right(problem_of(333, 333, 4, 4), mask_of(333, 4, 64, 0.5), "64");
  kernel_ = make_fa2_sparse_native(99 << 10);  // 8.6 and 8.9
  const Support support = kernel_->supports(problem_of(64, 64, 2, 2), mask_of(64, 2, 64, 0.5));
  EXPECT_EQ(support.code, StatusCode::unsupported);
  EXPECT_NE(support.reason.find("shared memory"), std::string::npos) << support.reason;
}

TEST_F(Fa2Sparse, LargeScoresStayFinite) {
  Problem problem = problem_of(260, 260, 2, 2);
  problem.softmax_scale = 8;  // scores of ±400: exponentials overflow without the row's greatest
  expect_right(problem, mask_of(260, 2, 128, 0.5), "scale 8");
}

TEST_F(Fa2Sparse, RefusesWhatItCannotDo) {
  const Mask mask = mask_of(512, 1, 128, 0.5);
  Problem problem = problem_of(512, 512, 2, 2);
  EXPECT_TRUE(kernel_->supports(problem, mask).ok());
  EXPECT_EQ(kernel_->supports(problem, mask_of(512, 1, 96, 0.5)).code, StatusCode::unsupported);
  problem.accumulate = true;
  EXPECT_EQ(kernel_->supports(problem, mask).code, StatusCode::unsupported);
  problem.accumulate = false;
  problem.dtype = DType::float32;
  EXPECT_EQ(kernel_->supports(problem, mask).code, StatusCode::unsupported);
}

}  // namespace
}  // namespace longca::testing
