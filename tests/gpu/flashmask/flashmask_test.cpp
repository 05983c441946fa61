#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attention/kernels/flashmask/flashmask_native.h"
#include "gpu/kernel_test.h"
#include "gpu/small_mask.h"

namespace longca::testing {
namespace {

class Flashmask : public KernelTest {
 protected:
  Flashmask() { kernel_ = make_flashmask_native(); }
};

std::vector<std::string> static_masks() {
  std::vector<std::string> names;
  for (const MaskTraits& traits : mask_table()) {
    if (!traits.uses_blocks) names.push_back(traits.name);
  }
  return names;
}

TEST_F(Flashmask, EveryStaticMask) {
  for (const std::string& name : static_masks()) {
    for (const std::int64_t tokens : {1, 65, 333}) {
      const Mask mask = small_mask(name, tokens);
      const Problem problem = problem_of(tokens, tokens, 8, 2);
      expect_right(problem, mask, name + " of " + std::to_string(tokens));
    }
  }
}

TEST_F(Flashmask, HeadGroups) {
  const struct { int heads_q, heads_k; } shapes[] = {{64, 8}, {4, 4}, {6, 2}, {5, 1}};
  for (const auto& shape : shapes) {
    expect_right(problem_of(200, 200, shape.heads_q, shape.heads_k), small_mask("causal", 200),
                 std::to_string(shape.heads_q) + ":" + std::to_string(shape.heads_k));
  }
}

TEST_F(Flashmask, FewerAndMoreQueriesThanKeysAndRowsWithoutKeys) {
  const auto masked = [](std::int64_t q, std::int64_t k, MaskSlice slice) {
    return Mask::from_slices(q, k, {slice});
  };
  expect_right(problem_of(200, 333, 4, 2),
               masked(200, 333, {10, 150, 20, 300, MaskSliceType::causal}), "causal rectangle");
  expect_right(problem_of(333, 70, 4, 2), masked(333, 70, {130, 260, 0, 70, MaskSliceType::full}),
               "rows before and after see nothing");
  expect_right(problem_of(129, 129, 2, 1), masked(129, 129, {0, 0, 0, 0, MaskSliceType::full}),
               "no row sees anything");
  expect_right(problem_of(0, 65, 2, 1), masked(0, 65, {0, 0, 0, 0, MaskSliceType::full}),
               "no queries");
  expect_right(problem_of(65, 0, 2, 1), masked(65, 0, {0, 0, 0, 0, MaskSliceType::full}),
               "no keys");
}

TEST_F(Flashmask, OneLongColumnSplitsTheGroupOfHeads) {
  // All rows see the first keys, the rest nearly nothing: CTAs of one key block share it.
  expect_right(problem_of(1500, 1500, 8, 2), small_mask("prefix_lm_document", 1500), "prefix");
  expect_right(problem_of(1000, 1000, 8, 1), small_mask("full", 1000), "full");
}

TEST_F(Flashmask, MasksOfEightThousandTokens) {
  for (const std::string name : {"causal", "causal_document", "global_sliding_window"}) {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = 8192;
    expect_right_there(problem_of(8192, 8192, 64, 8), generate_mask(spec).mask, name);
  }
}

TEST_F(Flashmask, SmallerTilesWhereSharedMemoryIsScarce) {
  kernel_ = make_flashmask_native(163 << 10);  // compute capability 8.0
  for (const std::string& name : static_masks()) {
    expect_right(problem_of(333, 333, 8, 2), small_mask(name, 333), name);
  }
  expect_right(problem_of(1000, 1000, 8, 1), small_mask("full", 1000), "split group");
  kernel_ = make_flashmask_native(99 << 10);  // 8.6 and 8.9
  const Support support = kernel_->supports(problem_of(64, 64, 2, 2), small_mask("causal", 64));
  EXPECT_EQ(support.code, StatusCode::unsupported);
  EXPECT_NE(support.reason.find("shared memory"), std::string::npos) << support.reason;
}

TEST_F(Flashmask, LargeScoresStayFinite) {
  Problem problem = problem_of(130, 130, 2, 2);
  problem.softmax_scale = 8;  // scores of ±400: exponentials overflow without the row's greatest
  expect_right(problem, small_mask("causal", 130), "scale 8");
}

TEST_F(Flashmask, RefusesWhatItCannotDo) {
  const Mask causal = small_mask("causal", 64);
  Problem problem = problem_of(64, 64, 2, 2);
  problem.accumulate = true;
  EXPECT_EQ(kernel_->supports(problem, causal).code, StatusCode::unsupported);
  problem.accumulate = false;
  problem.dtype = DType::float32;
  EXPECT_EQ(kernel_->supports(problem, causal).code, StatusCode::unsupported);
  problem.dtype = DType::bfloat16;
  EXPECT_EQ(kernel_->supports(problem, small_mask("block_sparse", 64)).code,
            StatusCode::unsupported);
}

}  // namespace
}  // namespace longca::testing
