#include "attention/selection/select_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "attention/inputs/inputs.h"
#include "attention/selection/exact_selection.h"
#include "core/error.h"

namespace longca::testing {
namespace {

/// A selection by float32 means and scores can be this wrong, relative to |q| · |k|.
constexpr double kTie = 1e-6;

Problem problem_of(std::int64_t tokens, int heads_q, int heads_k, int dim, DType dtype) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = tokens;
  problem.heads_q = heads_q;
  problem.heads_k = heads_k;
  problem.head_dim = dim;
  problem.dtype = dtype;
  return problem;
}

RC_GTEST_PROP(SelectBlocks, KeepsTheHighestScores, (std::uint64_t seed)) {
  const int heads_k = *rc::gen::inRange(1, 4);
  const int heads_q = heads_k * *rc::gen::inRange(1, 4);
  const Problem problem =
      problem_of(*rc::gen::inRange<std::int64_t>(1, 400), heads_q, heads_k,
                 *rc::gen::inRange(1, 40), *rc::gen::element(DType::float32, DType::bfloat16));
  MaskSpec spec;
  spec.name = *rc::gen::element<std::string>("block_sparse", "block_sparse_variable");
  spec.tokens = problem.tokens_q;
  spec.seed = seed;
  spec.heads_q = heads_q;
  spec.heads_k = heads_k;
  spec.block = *rc::gen::inRange<std::int64_t>(1, 500);  // also larger than the sequence
  spec.density = *rc::gen::inRange(1, 101) / 100.0;
  spec.block_heads = *rc::gen::element<std::string>("kv", "query");
  spec.block_causal = *rc::gen::arbitrary<bool>();
  const Inputs inputs = make_inputs(problem, seed);
  const BlockChoice choice = block_choice(spec);
  const BlockLists lists = select_blocks(problem, inputs.q.view(), inputs.k.view(), choice);
  RC_ASSERT(fault_of_selection(problem, inputs.q.view(), inputs.k.view(), choice, lists, kTie) ==
            "");
  const Mask mask = selected_mask(spec, problem, inputs.q.view(), inputs.k.view()).mask;
  RC_ASSERT(*mask.blocks() == lists);
}

/// Blocks of one token whose score with the only query is given.
BlockLists chosen_by(const std::vector<float>& scores, double density, float query = 1) {
  const auto tokens = static_cast<std::int64_t>(scores.size());
  const Problem problem = problem_of(tokens, 1, 1, 1, DType::float32);
  std::vector<float> queries(scores.size(), query);
  std::vector<float> keys = scores;
  const TensorView q{queries.data(), DType::float32, tokens, 1, 1, 1, 1};
  const TensorView k{keys.data(), DType::float32, tokens, 1, 1, 1, 1};
  return select_blocks(problem, q, k, {{0, tokens}, uniform_bounds(tokens, 1), 1, density, false});
}

TEST(SelectBlocks, OfEqualScoresTheEarlierBlockIsKept) {
  EXPECT_THAT(chosen_by({1, 2, 2, 2, 0}, 0.4).indices, ::testing::ElementsAre(1, 2));
  EXPECT_THAT(chosen_by({0, -0.0F, 0, 0}, 0.5).indices, ::testing::ElementsAre(0, 1));
  EXPECT_THAT(chosen_by({-0.0F, 0, -1, -2}, 0.25).indices, ::testing::ElementsAre(0));
  EXPECT_THAT(chosen_by({-3, -1, -2, -4}, 0.5).indices, ::testing::ElementsAre(1, 2));
  EXPECT_THAT(chosen_by({3, 1, 2, 4}, 0.5, -1).indices, ::testing::ElementsAre(1, 2));
}

TEST(SelectBlocks, AGroupOfQueryHeadsIsAveraged) {
  const std::vector<float> queries = {5, -4};  // one token, two heads: the mean is 0.5
  const std::vector<float> keys = {-1, 3, 2};
  ConstTensorView q;
  q.data = queries.data();
  q.tokens = 1;
  q.heads = 2;
  q.dim = q.head_stride = 1;
  q.token_stride = 2;
  ConstTensorView k;
  k.data = keys.data();
  k.tokens = 3;
  k.heads = k.dim = k.head_stride = k.token_stride = 1;
  const Problem problem = problem_of(1, 2, 1, 1, DType::float32);
  EXPECT_THAT(pooled(q, {0, 1}, 1), ::testing::ElementsAre(0.5F));
  EXPECT_THAT(select_blocks(problem, q, k, {{0, 1}, {0, 1, 2, 3}, 1, 0.34, false}).indices,
              ::testing::ElementsAre(1));
  EXPECT_THAT(select_blocks(problem, q, k, {{0, 1}, {0, 1, 2, 3}, 2, 0.34, false}).indices,
              ::testing::ElementsAre(1, 0))
      << "per query head, the second turns the order round";
}

TEST(SelectBlocks, SaysWhatItDoesNotTake) {
  const auto error = [](const Problem& problem, int lists) -> std::string {
    try {
      check_choice(problem, {{0, 1}, {0, 1}, lists, 0.5, false});
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error(problem_of(1, 6, 2, 8, DType::float32), 3),
            "blocks are selected per query head or per KV head: 3 lists for heads 6:2");
  EXPECT_EQ(error(problem_of(1, 6, 2, 8, DType::float16), 2),
            "blocks are selected from float32 and bfloat16 tensors, not from float16");
  EXPECT_EQ(error(problem_of(1, 6, 2, 8, DType::bfloat16), 6), "");
}

TEST(ExactSelection, SeesAWrongBlock) {
  const Problem problem = problem_of(300, 2, 1, 16, DType::float32);
  const Inputs inputs = make_inputs(problem, 3);
  const BlockChoice choice{uniform_bounds(300, 30), uniform_bounds(300, 30), 2, 0.5, false};
  BlockLists lists = select_blocks(problem, inputs.q.view(), inputs.k.view(), choice);
  const auto fault = [&] {
    return fault_of_selection(problem, inputs.q.view(), inputs.k.view(), choice, lists, kTie);
  };
  ASSERT_EQ(fault(), "");
  // The first row keeps another block instead of its last one.
  std::vector<std::int32_t> left_out;
  for (std::int32_t j = 0; j < 10; ++j) {
    const auto kept = lists.kept(0, 0);
    if (std::find(kept.begin(), kept.end(), j) == kept.end()) left_out.push_back(j);
  }
  lists.indices[4] = left_out.back();
  std::sort(lists.indices.begin(), lists.indices.begin() + 5);
  EXPECT_THAT(fault(), ::testing::HasSubstr("head 0, query block 0 keeps a score of"));
}

}  // namespace
}  // namespace longca::testing
