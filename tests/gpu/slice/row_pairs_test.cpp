// Pairs of query tiles, which plans choose for long rows only: here for rows of any length.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attention/kernels/common/attention_args.h"
#include "attention/kernels/slice/device_lists.h"
#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/slice.h"
#include "gpu/kernel_test.h"
#include "gpu/small_mask.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

class RowPairs : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    if (gpu().properties().architecture != 90) {
      GTEST_SKIP() << "no clusters of CTAs on the " << gpu().properties().name;
    }
  }

  static std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const MaskTraits& traits : mask_table()) names.push_back(traits.name);
    return names;
  }

  /// Twice over the same lists; every element held to the reference, and to the bit to the first.
  static void expect_pairs_right(Problem problem, const Mask& mask, int pack,
                                 const std::string& what) {
    SCOPED_TRACE(what);
    problem.backward = false;
    const Inputs inputs = make_inputs(problem, kSeed);
    const slice::UploadedLists lists(mask, {.pack = pack, .row_pairs = true},
                                     cost::default_platform());
    const Outputs first(problem);
    const Outputs second(problem);
    for (const Outputs* outputs : {&first, &second}) {
      ForwardArgs args;
      args.q = inputs.q.view();
      args.k = inputs.k.view();
      args.v = inputs.v.view();
      args.o = outputs->o.view();
      args.lse = outputs->lse.view();
      slice::ForwardParams params{attention_args("slice", problem, args)};
      params.lists = lists.args();
      params.section_heads = problem.heads_k;
      params.work_counter = lists.work_counter();
      slice::launch_forward(params, problem.dtype, dims_of(problem),
                            static_cast<cudaStream_t>(gpu().stream()));
    }
    gpu().synchronize();
    EXPECT_EQ(gpu().hash(0, first.o.view().data, first.o.bytes()),
              gpu().hash(0, second.o.view().data, second.o.bytes()));
    EXPECT_EQ(gpu().hash(0, first.lse.view().data, first.lse.bytes()),
              gpu().hash(0, second.lse.view().data, second.lse.bytes()));
    const auto verifier = make_verifier(problem, mask, inputs, {.seconds = 1e6}, kSeed);
    const ConstLseView lse(second.lse.view());
    const Verdict verdict = verifier->check_forward(second.o.view(), &lse);
    EXPECT_TRUE(verdict.ok) << verdict.reason;
  }
};

TEST_F(RowPairs, EveryMaskAtAwkwardLengthsAndPacks) {
  struct Case {
    Heads heads;
    int pack;
  };
  for (const std::string& name : names()) {
    for (const std::int64_t tokens : {1, 63, 65, 127, 129, 1000}) {
      for (const Case& c : {Case{{3, 3}, 1}, Case{{4, 2}, 2}, Case{{8, 1}, 8}}) {
        const Mask mask = small_mask(name, tokens, c.heads);
        if (c.heads.q / mask.heads() % c.pack != 0) continue;
        expect_pairs_right(
            problem_of(tokens, tokens, c.heads.q, c.heads.k), mask, c.pack,
            name + " of " + std::to_string(tokens) + ", pack " + std::to_string(c.pack));
      }
    }
  }
}

/// Many more pairs than clusters, so that these take turns.
TEST_F(RowPairs, LongRowsOfManyHeads) {
  for (const std::string name : {"full", "causal", "causal_document", "prefix_lm_causal"}) {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = 5000;
    spec.lengths = "pile";
    expect_pairs_right(problem_of(5000, 5000, 16, 16), generate_mask(spec).mask, 1, name);
  }
}

/// Row maxima move in full tiles, in one CTA of a pair or in both.
TEST_F(RowPairs, LargeScores) {
  for (const float scale : {3.0F, 8.0F}) {
    for (const std::string name : {"full", "causal", "document", "prefix_lm_causal"}) {
      Problem problem = problem_of(3000, 3000, 12, 12);
      problem.softmax_scale = scale;
      expect_pairs_right(problem, small_mask(name, 3000, {12, 12}), 1, name);
    }
  }
}

TEST_F(RowPairs, OtherDimensionsAndFloat16) {
  for (const DimPair dims : {DimPair{128, 128}, DimPair{192, 128}, DimPair{256, 256}}) {
    Problem problem = problem_of(1000, 1000, 3, 3);
    problem.head_dim = dims.head_dim;
    problem.head_dim_v = dims.value_dim == dims.head_dim ? 0 : dims.value_dim;
    if (dims.head_dim == 128) problem.dtype = DType::float16;
    for (const std::string name : {"full", "causal", "document", "shared_question"}) {
      expect_pairs_right(problem, small_mask(name, 1000, {3, 3}), 1, name + ", " + to_string(dims));
    }
  }
}

TEST_F(RowPairs, RowsWithoutKeysAndKeysWithoutRows) {
  for (const Mask& mask :
       {Mask::from_slices(600, 70, {{130, 560, 0, 70, MaskSliceType::full}}),
        Mask::from_slices(300, 900, {{10, 290, 200, 700, MaskSliceType::causal}}),
        Mask::from_slices(300, 65, {}), Mask::from_slices(129, 300, {{128, 129, 0, 300, {}}})}) {
    expect_pairs_right(problem_of(mask.q_tokens(), mask.k_tokens(), 2, 2), mask, 1,
                       std::to_string(mask.q_tokens()) + " rows");
  }
}

/// What a plan takes where it gains.
TEST_F(RowPairs, ArePlannedWithoutSharedHeads) {
  const Mask mask = small_mask("causal", 8192);
  ASSERT_TRUE(slice::choose_tiling(mask, 1, 128).row_pairs);
  Problem problem = problem_of(8192, 8192, 2, 2);
  problem.backward = false;
  const auto notes = make_slice()->plan(problem, mask)->notes();
  EXPECT_EQ(notes.at("pairs"), "query tiles");
  problem.accumulate = true;
  EXPECT_FALSE(make_slice()->plan(problem, mask)->notes().contains("pairs"));
}

}  // namespace
}  // namespace longca::testing
