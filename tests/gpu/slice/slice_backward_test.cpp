#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "attention/kernels/slice/device_lists.h"
#include "attention/kernels/slice/slice.h"
#include "gpu/kernel_test.h"
#include "gpu/slice/slice_variant.h"
#include "gpu/small_mask.h"
#include "mask/block_draw.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

class SliceBackward : public KernelTest, public ::testing::WithParamInterface<SliceVariant> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    if (const auto refusal = GetParam().refusal(); !refusal.empty()) GTEST_SKIP() << refusal;
    kernel_ = make_slice(GetParam().path);
  }

  Problem problem_of(std::int64_t tokens_q, std::int64_t tokens_k, int heads_q, int heads_k) const {
    return GetParam().of_dims(testing::problem_of(tokens_q, tokens_k, heads_q, heads_k));
  }

  void expect_right_at(std::int64_t q, std::int64_t k, Heads heads, const Mask& mask,
                       const std::string& what) {
    expect_right(problem_of(q, k, heads.q, heads.k), mask,
                 what + ", heads " + std::to_string(heads.q) + ":" + std::to_string(heads.k));
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, SliceBackward, ::testing::ValuesIn(slice_variants()), variant_name);

TEST_P(SliceBackward, EveryMaskAtAwkwardLengthsAndHeads) {
  for (const MaskTraits& traits : mask_table()) {
    for (const std::int64_t tokens : {1, 63, 65, 127, 400}) {
      for (const Heads heads : {Heads{2, 2}, Heads{8, 1}, Heads{6, 2}, Heads{4, 1}}) {
        expect_right_at(tokens, tokens, heads, small_mask(traits.name, tokens, heads),
                        traits.name + " of " + std::to_string(tokens));
      }
    }
  }
}

TEST_P(SliceBackward, BlockListsOfQueryHeadsAndOddBlocks) {
  for (const std::string name : {"block_sparse", "block_sparse_variable"}) {
    for (const std::int64_t block : {8, 50, 64, 128}) {
      for (const std::string lists : {"kv", "query"}) {
        const Heads heads = {8, 2};
        expect_right_at(333, 333, heads, small_mask(name, 333, heads, lists, block),
                        name + " of " + std::to_string(block) + " per " + lists + " head");
      }
    }
  }
}

TEST_P(SliceBackward, BlockListsUnderADiagonal) {
  const std::vector<std::int64_t> bounds = uniform_bounds(300, 64);
  const Mask mask = Mask::from_blocks(300, 300, {{0, 300, 0, 300, MaskSliceType::causal}},
                                      draw_blocks({bounds, bounds, 2, 0.4}, kSeed));
  expect_right_at(300, 300, {8, 2}, mask, "causal blocks");
}

TEST_P(SliceBackward, FewerAndMoreQueriesThanKeysAndRowsWithoutKeys) {
  const auto masked = [](std::int64_t q, std::int64_t k, longca::MaskSlice slice) {
    return Mask::from_slices(q, k, {slice});
  };
  for (const Heads heads : {Heads{4, 2}, Heads{8, 1}}) {
    expect_right_at(200, 333, heads, masked(200, 333, {10, 150, 20, 300, MaskSliceType::causal}),
                    "causal rectangle: keys before and after that nobody sees");
    expect_right_at(333, 70, heads, masked(333, 70, {130, 260, 0, 70, MaskSliceType::full}),
                    "rows before and after see nothing");
    expect_right_at(129, 129, heads, masked(129, 129, {0, 0, 0, 0, MaskSliceType::full}),
                    "no row sees anything");
    expect_right_at(0, 65, heads, masked(0, 65, {0, 0, 0, 0, MaskSliceType::full}), "no queries");
    expect_right_at(65, 0, heads, masked(65, 0, {0, 0, 0, 0, MaskSliceType::full}), "no keys");
  }
}

/// Every second key, of a row and the next in turn.
TEST_P(SliceBackward, ManyIntervalsInOneTile) {
  std::vector<longca::MaskSlice> slices;
  for (std::int64_t row = 0; row < 100; ++row) {
    for (std::int64_t key = row % 2; key < 150; key += 2) {
      slices.push_back({row, row + 1, key, key + 1, MaskSliceType::full});
    }
  }
  expect_right_at(100, 150, {8, 1}, Mask::from_slices(100, 150, slices), "checkerboard");
}

TEST_P(SliceBackward, KeyTilesSplitAmongCtas) {
  // Every row sees the first keys, and a key tile of few heads would keep one CTA busy.
  for (const std::string name : {"full", "shared_question", "prefix_lm_causal"}) {
    expect_right_at(1200, 1200, {8, 1}, small_mask(name, 1200, {8, 1}), name);
    expect_right_at(1200, 1200, {2, 1}, small_mask(name, 1200, {2, 1}), name);
  }
}

/// Their dQ is written region by region while work goes on, in calls behind each other.
TEST_P(SliceBackward, LongRowsOfManyHeads) {
  for (const std::string name : {"causal", "causal_document", "global_sliding_window"}) {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = 8000;
    expect_right_there(problem_of(8000, 8000, 64, 8), generate_mask(spec).mask, name);
  }
}

/// CTAs go through them in chunks, and add the chunks' dK and dV.
TEST_P(SliceBackward, RowsLongerThanAChunk) {
  for (const std::string name : {"causal", "block_sparse"}) {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = 14000;
    spec.heads_q = 16;
    spec.heads_k = 2;
    expect_right_there(problem_of(14000, 14000, 16, 2), generate_mask(spec).mask, name);
  }
}

/// Into float32 that holds ones: what comes is what the plain call rounds, and ones more.
TEST_P(SliceBackward, AddsIntoGivenGradients) {
  // Key tiles of one CTA and split ones; the last tile is short.
  // The larger problem's dQ is written while work goes on.
  struct Setting {
    std::string name;
    std::int64_t tokens;
    Heads heads;
  };
  for (const Setting& setting :
       {Setting{"causal", 1100, {4, 1}}, Setting{"shared_question", 1100, {4, 1}},
        Setting{"document", 2200, {32, 4}}}) {
    const auto& [name, tokens, heads] = setting;
    SCOPED_TRACE(name);
    const Problem problem = problem_of(tokens, tokens, heads.q, heads.k);
    const Mask mask = small_mask(name, tokens, heads);
    const Inputs inputs = make_inputs(problem, kSeed);
    const Outputs plain = solve(problem, mask);
    Outputs sums = solve(problem, mask);  // for O and LSE
    MemoryTracker& memory = gpu().memory();
    Tensor dq(memory, DType::float32, tokens, heads.q, problem.head_dim);
    Tensor dk(memory, DType::float32, tokens, heads.k, problem.head_dim);
    Tensor dv(memory, DType::float32, tokens, heads.k, problem.value_dim());
    BackwardArgs args = backward_args(inputs, sums);
    const auto expect_sum = [&](const Tensor& sum, const Tensor& rounded) {
      const auto count = static_cast<std::size_t>(sum.bytes()) / sizeof(float);
      std::vector<float> got(count);
      std::vector<std::uint16_t> expected(count);
      gpu().copy(got.data(), sum.view().data, sum.bytes());
      gpu().copy(expected.data(), rounded.view().data, rounded.bytes());
      std::size_t far = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const float value = std::bit_cast<float>(std::uint32_t{expected[i]} << 16);
        const float error = std::abs(got[i] - 1 - value);
        far += !(error <= std::abs(value) / 200 + 1e-4F);
      }
      EXPECT_EQ(far, 0U);
    };
    const std::vector<float> ones(static_cast<std::size_t>(tokens * heads.q * problem.head_dim),
                                  1.0F);
    for (const Tensor* tensor : {&dq, &dk, &dv}) {
      gpu().copy(tensor->view().data, ones.data(), tensor->bytes());
    }
    args.dq = dq.view();
    args.dk = dk.view();
    args.dv = dv.view();
    args.accumulate = true;
    args.stream = gpu().stream();
    kernel_->plan(problem, mask)->backward(args);
    gpu().synchronize();
    expect_sum(dq, plain.dq);
    expect_sum(dk, plain.dk);
    expect_sum(dv, plain.dv);
  }
}

TEST_P(SliceBackward, GivesTheSameBitsInAFixedOrder) {
  struct Setting {
    std::string name;
    Heads heads;
  };
  for (const Setting& setting :
       {Setting{"causal", {8, 2}}, Setting{"shared_question", {8, 2}}, Setting{"document", {8, 2}},
        Setting{"block_sparse", {8, 2}}, Setting{"document", {64, 8}}}) {
    const auto& [name, heads] = setting;
    SCOPED_TRACE(name + ", heads " + std::to_string(heads.q));
    Problem problem = problem_of(1100, 1100, heads.q, heads.k);
    problem.deterministic = true;
    const Mask mask = small_mask(name, 1100, heads);
    ASSERT_EQ(kernel_->supports(problem, mask).reason, "");
    const Inputs inputs = make_inputs(problem, kSeed);
    const Outputs outputs = solve(problem, mask);
    const auto plan = kernel_->plan(problem, mask);
    BackwardArgs args = backward_args(inputs, outputs);
    args.stream = gpu().stream();
    const auto bits = [&] {
      for (const Tensor* tensor : {&outputs.dq, &outputs.dk, &outputs.dv}) {
        gpu().fill(tensor->view().data, 0xff, tensor->bytes());
      }
      plan->backward(args);
      gpu().synchronize();
      return gpu().hash(gpu().hash(gpu().hash(0, outputs.dq.view().data, outputs.dq.bytes()),
                                   outputs.dk.view().data, outputs.dk.bytes()),
                        outputs.dv.view().data, outputs.dv.bytes());
    };
    const auto first = bits();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(bits(), first);
    const auto verifier = make_verifier(problem, mask, inputs, {.seconds = 1e6}, kSeed);
    const Verdict verdict = verifier->check_backward(args);
    EXPECT_TRUE(verdict.ok) << verdict.reason;
  }
}

/// Blocks that sub-tiles and query tiles do not cross: the lists are made on the GPU.
TEST_P(SliceBackward, BlockListsFromBits) {
  for (const std::int64_t block : {64, 128, 192}) {
    for (const Heads heads : {Heads{4, 4}, Heads{8, 2}}) {
      for (const std::string lists : {"kv", "query"}) {
        for (const std::int64_t tokens : {block, 3 * block, 11 * block}) {
          expect_right_at(tokens, tokens, heads,
                          small_mask("block_sparse", tokens, heads, lists, block),
                          std::to_string(tokens) + " tokens in blocks of " + std::to_string(block) +
                              " per " + lists + " head");
        }
      }
    }
  }
}

/// Of the path of 128 dimensions all up to 128, one in a build without all instantiations; others
/// are variants of their own.
TEST_P(SliceBackward, EveryDimensionOfThisBuild) {
  for (const int dim : kernel_->capabilities().head_dims) {
    Problem problem = problem_of(700, 700, 8, 2);
    const bool variant = problem.head_dim != 128;
    if (variant ? dim != 128 : dim > 128) continue;  // such a variant once
    if (!variant) problem.head_dim = dim;
    for (const std::string name : {"causal", "shared_question", "block_sparse"}) {
      expect_right(problem, small_mask(name, 700, {8, 2}), name + " of " + std::to_string(dim));
    }
  }
}

TEST_P(SliceBackward, LargeScoresStayFinite) {
  Problem problem = problem_of(130, 130, 2, 2);
  // Scores of ±400. With 64 dimensions half: else gradients of a key are 1e-39, which float32
  // flushes.
  problem.softmax_scale = problem.head_dim == 64 ? 4 : 8;
  expect_right(problem, small_mask("causal", 130, {2, 2}), "large scores");
}

/// float16 ends at 2⁻²⁴: of the few keys past the 64th most see probabilities that are smaller, and
/// their gradients are no more than these.
TEST_P(SliceBackward, SmallProbabilitiesInFloat16) {
  for (const int tokens : {65, 66, 68, 72, 129}) {
    Problem problem = problem_of(tokens, tokens, 4, 2);
    problem.dtype = DType::float16;
    const Mask mask = small_mask("causal", tokens, {4, 2});
    const std::string refusal = kernel_->supports(problem, mask).reason;
    if (!refusal.empty()) GTEST_SKIP() << refusal;
    for (const float deviation : {6.0F, 9.0F}) {  // of the scores
      problem.softmax_scale = deviation / std::sqrt(static_cast<float>(problem.head_dim));
      expect_right(problem, mask, std::to_string(tokens) + " tokens, " + std::to_string(deviation));
    }
  }
}

/// Segments made by the device are those that the host makes, up to which patterns are stored.
TEST(SliceDeviceLists, AreThoseOfTheHost) {
  if (!Device::available(DeviceKind::cuda).ok()) GTEST_SKIP() << "no GPU";
  for (const std::int64_t block : {64, 128, 192}) {
    for (const int pack : {1, 2, 8}) {
      const Mask mask = small_mask("block_sparse", 22 * block, {16, 2}, "kv", block);
      const slice::BackwardWork work = {.heads_q = 16, .heads_k = 2};
      const slice::TransposedLists host = slice::make_transposed_lists(mask, pack, work);
      const slice::DeviceTransposedTiles made =
          slice::make_device_transposed_lists(mask, pack, work);
      EXPECT_TRUE(std::ranges::equal(made.lists.order, host.order,
                                     [](const slice::WorkItem& a, const slice::WorkItem& b) {
                                       return a.tile == b.tile && a.q_begin == b.q_begin &&
                                              a.q_end == b.q_end && a.split == b.split;
                                     }));
      ASSERT_EQ(made.segments.bytes(),
                static_cast<std::int64_t>(host.segments.size() * sizeof(slice::QuerySegment)));
      std::vector<slice::QuerySegment> segments(host.segments.size());
      Device::get(DeviceKind::cuda)
          .copy(segments.data(), made.segments.data(), made.segments.bytes());
      const auto words = [](const slice::TransposedLists& lists, std::int32_t pattern) {
        if (pattern == slice::kFull) return std::vector<std::uint64_t>();
        const auto begin = lists.patterns.begin() + std::ptrdiff_t{pattern} * slice::kTileKeys;
        return std::vector<std::uint64_t>(begin, begin + slice::kTileKeys);
      };
      for (std::size_t i = 0; i < segments.size(); ++i) {
        EXPECT_EQ(segments[i].q_tile, host.segments[i].q_tile);
        EXPECT_EQ(segments[i].count, host.segments[i].count);
        EXPECT_EQ(words(made.lists, segments[i].pattern), words(host, host.segments[i].pattern));
      }
    }
  }
}

}  // namespace
}  // namespace longca::testing
