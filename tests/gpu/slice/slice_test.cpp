#include "attention/kernels/slice/slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "attention/inputs/inputs.h"
#include "attention/reference/verifier.h"
#include "gpu/gpu_test.h"
#include "gpu/slice/slice_variant.h"
#include "gpu/small_mask.h"
#include "mask/block_draw.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr Heads kHeads[] = {{4, 4}, {8, 1}, {6, 2}, {8, 4}};

Problem problem_of(std::int64_t tokens_q, std::int64_t tokens_k, Heads heads) {
  Problem problem;
  problem.tokens_q = tokens_q;
  problem.tokens_k = tokens_k;
  problem.heads_q = heads.q;
  problem.heads_k = heads.k;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  return problem;
}

/// Outputs, poisoned.
struct Outputs {
  explicit Outputs(const Problem& p)
      : o(Device::get(p.device).memory(), p.dtype, p.tokens_q, p.heads_q, p.value_dim()),
        lse(Device::get(p.device).memory(), p.heads_q, p.tokens_q) {
    Device::get(p.device).fill(o.view().data, 0xff, o.bytes());
    Device::get(p.device).fill(lse.view().data, 0xff, lse.bytes());
  }
  Tensor o;
  Lse lse;
};

class MaskSlice : public GpuTest, public ::testing::WithParamInterface<SliceVariant> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (const auto refusal = GetParam().refusal(); !refusal.empty()) GTEST_SKIP() << refusal;
    kernel_ = make_slice(GetParam().path);
  }

  Problem problem_of(std::int64_t tokens_q, std::int64_t tokens_k, Heads heads) const {
    return GetParam().of_dims(testing::problem_of(tokens_q, tokens_k, heads));
  }

  static ForwardArgs args_of(const Inputs& inputs, const Outputs& outputs) {
    ForwardArgs args;
    args.q = inputs.q.view();
    args.k = inputs.k.view();
    args.v = inputs.v.view();
    args.o = outputs.o.view();
    args.lse = outputs.lse.view();
    args.stream = gpu().stream();
    return args;
  }

  /// Twice by one plan; every element held to the reference, and to the bit to the first time's.
  void expect_right(const Problem& problem, const Mask& mask, const std::string& what) {
    SCOPED_TRACE(what);
    ASSERT_EQ(kernel_->supports(problem, mask).reason, "");
    const Inputs inputs = make_inputs(problem, kSeed);
    const auto plan = kernel_->plan(problem, mask);
    const Outputs first(problem);
    plan->forward(args_of(inputs, first));
    const Outputs outputs(problem);
    plan->forward(args_of(inputs, outputs));
    gpu().synchronize();
    EXPECT_EQ(gpu().hash(0, first.o.view().data, first.o.bytes()),
              gpu().hash(0, outputs.o.view().data, outputs.o.bytes()));
    EXPECT_EQ(gpu().hash(0, first.lse.view().data, first.lse.bytes()),
              gpu().hash(0, outputs.lse.view().data, outputs.lse.bytes()));
    expect_right_outputs(problem, mask, inputs, outputs);
  }

  static void expect_right_outputs(const Problem& problem, const Mask& mask, const Inputs& inputs,
                                   const Outputs& outputs) {
    const auto verifier = make_verifier(problem, mask, inputs, {.seconds = 1e6}, kSeed);
    const ConstLseView lse(outputs.lse.view());
    const Verdict verdict = verifier->check_forward(outputs.o.view(), &lse);
    EXPECT_TRUE(verdict.ok) << verdict.reason;
  }

  /// Large scores of head 9 leave the bits of all KV heads but its own.
  void expect_others_alone(const Problem& problem, const Mask& mask) {
    constexpr std::size_t kLarge = 9;
    const auto heads = static_cast<std::size_t>(problem.heads_q);
    const std::size_t group = heads / static_cast<std::size_t>(problem.heads_k);
    const Inputs inputs = make_inputs(problem, kSeed);
    const auto plan = kernel_->plan(problem, mask);
    const auto others = [&](const Outputs& outputs) {
      gpu().synchronize();
      const std::size_t rows = static_cast<std::size_t>(problem.tokens_q) * heads;
      const std::size_t elements = rows * static_cast<std::size_t>(problem.value_dim());
      std::vector<std::uint16_t> o(elements);
      gpu().copy(o.data(), outputs.o.view().data, outputs.o.bytes());
      for (std::size_t i = 0; i < elements; ++i) {
        const std::size_t head = i / static_cast<std::size_t>(problem.value_dim()) % heads;
        if (head / group == kLarge / group) o[i] = 0;
      }
      return o;
    };
    const Outputs before(problem);
    plan->forward(args_of(inputs, before));
    const std::vector<std::uint16_t> expected = others(before);

    const auto dim = static_cast<std::size_t>(problem.head_dim);
    std::vector<BFloat16> q(static_cast<std::size_t>(problem.tokens_q) * heads * dim);
    gpu().copy(q.data(), inputs.q.view().data, inputs.q.bytes());
    for (std::size_t i = 0; i < q.size(); ++i) {
      if (i / dim % heads == kLarge) q[i] = BFloat16(static_cast<float>(q[i]) * 100);
    }
    gpu().copy(inputs.q.view().data, q.data(), inputs.q.bytes());
    const Outputs outputs(problem);
    plan->forward(args_of(inputs, outputs));
    EXPECT_TRUE(others(outputs) == expected);
    expect_right_outputs(problem, mask, inputs, outputs);
  }

  std::unique_ptr<Kernel> kernel_;
};

INSTANTIATE_TEST_SUITE_P(Paths, MaskSlice, ::testing::ValuesIn(slice_variants()), variant_name);

TEST_P(MaskSlice, EveryMaskAtAwkwardLengthsAndHeads) {
  for (const MaskTraits& traits : mask_table()) {
    for (const std::int64_t tokens : {1, 63, 64, 65, 127, 1000}) {
      for (const Heads heads : kHeads) {
        const std::string what = traits.name + " of " + std::to_string(tokens) + ", heads " +
                                 std::to_string(heads.q) + ":" + std::to_string(heads.k);
        expect_right(problem_of(tokens, tokens, heads), small_mask(traits.name, tokens, heads),
                     what);
      }
    }
  }
}

TEST_P(MaskSlice, BlockListsOfQueryHeadsAndOddBlocks) {
  for (const std::string name : {"block_sparse", "block_sparse_variable"}) {
    for (const std::int64_t block : {8, 50, 64, 128}) {
      for (const Heads heads : {Heads{4, 4}, Heads{8, 2}}) {
        for (const std::string lists : {"kv", "query"}) {
          expect_right(problem_of(777, 777, heads), small_mask(name, 777, heads, lists, block),
                       name + " of " + std::to_string(block) + " per " + lists + " head, " +
                           std::to_string(heads.q) + " query heads");
        }
      }
    }
  }
}

/// Kept blocks of 20 to 60 tokens leave remainders alone: more partial tiles than a warp reads at a
/// time, most of whose sub-tiles have joints.
TEST_P(MaskSlice, ManyRemaindersOfKeptBlocks) {
  for (const Heads heads : {Heads{8, 1}, Heads{2, 2}}) {
    expect_right(problem_of(6000, 6000, heads),
                 small_mask("block_sparse_variable", 6000, heads, "kv", 40),
                 std::to_string(heads.q) + ":" + std::to_string(heads.k));
  }
}

/// Blocks that sub-tiles and row groups do not cross: the lists are made on the GPU.
TEST_P(MaskSlice, BlockListsFromBits) {
  for (const std::int64_t block : {64, 128, 192}) {
    for (const Heads heads : {Heads{4, 4}, Heads{8, 2}, Heads{8, 1}}) {
      for (const std::string lists : {"kv", "query"}) {
        for (const std::int64_t tokens : {block, 3 * block, 14 * block}) {
          expect_right(problem_of(tokens, tokens, heads),
                       small_mask("block_sparse", tokens, heads, lists, block),
                       std::to_string(tokens) + " tokens in blocks of " + std::to_string(block) +
                           " per " + lists + " head, " + std::to_string(heads.q) + ":" +
                           std::to_string(heads.k));
        }
      }
    }
  }
}

/// Blocks of 64 with a list per query head, and so many that row groups take key tiles in turn. Of
/// 63 blocks the last query tile has one row group. Large scores too, for which row maxima move.
TEST_P(MaskSlice, RowGroupsThatSeeDifferentKeyTiles) {
  constexpr std::int64_t kTokens = 63 * 64;
  for (const Heads heads : {Heads{4, 4}, Heads{8, 2}}) {
    for (const float scale : {0.1F, 8.0F}) {
      Problem problem = problem_of(kTokens, kTokens, heads);
      problem.softmax_scale = scale;
      expect_right(problem, small_mask("block_sparse", kTokens, heads, "query", 64),
                   std::to_string(heads.q) + ":" + std::to_string(heads.k) + ", scale " +
                       std::to_string(scale));
    }
  }
}

/// The same where one row group of a query tile sees everything and the other one two blocks, so
/// that many tiles in a row are not its own.
TEST_P(MaskSlice, RowGroupsThatSeeMuchAndLittle) {
  constexpr int kBlocks = 64;
  const std::vector<std::int64_t> bounds = uniform_bounds(kBlocks * 64, 64);
  for (const int first : {0, 1}) {
    BlockLists lists{.q_bounds = bounds, .k_bounds = bounds, .offsets = {0}, .indices = {}};
    for (int q = 0; q < kBlocks; ++q) {
      for (int k = 0; k < kBlocks; ++k) {
        if (q % 2 == first || k == 5 || k == q) lists.indices.push_back(k);
      }
      lists.offsets.push_back(static_cast<std::int64_t>(lists.indices.size()));
    }
    const Mask mask =
        Mask::from_blocks(bounds.back(), bounds.back(),
                          {{0, bounds.back(), 0, bounds.back(), MaskSliceType::full}}, lists);
    expect_right(problem_of(bounds.back(), bounds.back(), {2, 2}), mask,
                 "row group " + std::to_string(first) + " sees all");
  }
}

TEST_P(MaskSlice, BlockListsUnderADiagonal) {
  const Heads heads = {8, 2};
  const std::vector<std::int64_t> bounds = uniform_bounds(500, 64);
  const Mask mask = Mask::from_blocks(
      500, 500, {{0, 500, 0, 500, MaskSliceType::causal}},
      draw_blocks({.q_bounds = bounds, .k_bounds = bounds, .heads = 2, .density = 0.4}, kSeed));
  expect_right(problem_of(500, 500, heads), mask, "causal blocks");
}

TEST_P(MaskSlice, FewerAndMoreQueriesThanKeysAndRowsWithoutKeys) {
  const auto masked = [](std::int64_t q, std::int64_t k, longca::MaskSlice slice) {
    return Mask::from_slices(q, k, {slice});
  };
  for (const Heads heads : {Heads{4, 2}, Heads{8, 1}}) {
    expect_right(problem_of(200, 333, heads),
                 masked(200, 333, {10, 150, 20, 300, MaskSliceType::causal}), "causal rectangle");
    expect_right(problem_of(333, 70, heads),
                 masked(333, 70, {130, 260, 0, 70, MaskSliceType::full}),
                 "rows before and after see nothing");
    expect_right(problem_of(129, 129, heads), masked(129, 129, {0, 0, 0, 0, MaskSliceType::full}),
                 "no row sees anything");
    expect_right(problem_of(0, 65, heads), masked(0, 65, {0, 0, 0, 0, MaskSliceType::full}),
                 "no queries");
    expect_right(problem_of(65, 0, heads), masked(65, 0, {0, 0, 0, 0, MaskSliceType::full}),
                 "no keys");
  }
}

/// Every second key, of a row and the next in turn: more intervals than one word of a row holds.
TEST_P(MaskSlice, ManyIntervalsInOneTile) {
  std::vector<longca::MaskSlice> slices;
  for (std::int64_t row = 0; row < 100; ++row) {
    for (std::int64_t key = row % 2; key < 150; key += 2) {
      slices.push_back({row, row + 1, key, key + 1, MaskSliceType::full});
    }
  }
  expect_right(problem_of(100, 150, {8, 1}), Mask::from_slices(100, 150, slices), "checkerboard");
}

TEST_P(MaskSlice, LongRowsOfManyHeads) {
  const Heads heads = {64, 8};
  for (const std::string name : {"causal", "causal_document", "global_sliding_window"}) {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = 8000;
    spec.lengths = "pile";
    expect_right(problem_of(8000, 8000, heads), generate_mask(spec).mask, name);
  }
}

/// Of the path of 128 dimensions all up to 128; others are variants of their own.
TEST_P(MaskSlice, EveryDimensionThatWasBuilt) {
  const Heads heads = {8, 1};
  for (const DType dtype : kernel_->capabilities().dtypes) {
    for (const int dim : kernel_->capabilities().head_dims) {
      Problem problem = problem_of(1000, 1000, heads);
      problem.dtype = dtype;
      const bool variant = problem.head_dim != 128;
      if (variant ? dim != 128 : dim > 128) continue;  // such a variant once
      if (!variant) problem.head_dim = dim;
      if (problem.head_dim > 128 && dtype == DType::float16) continue;  // not in every build
      for (const std::string name : {"full", "causal", "causal_document", "sliding_window",
                                     "shared_question", "block_sparse"}) {
        expect_right(problem, small_mask(name, 1000, heads),
                     name + ", " + std::to_string(dim) + ", " + std::string(to_string(dtype)));
      }
    }
  }
}

/// Full tiles take no maximum: of scores of ±50 most exceed the first tile's without harm, of ±150
/// some by more than a sum may hold, and of ±400 exponentials overflow. With pairs of CTAs (16:1
/// heads) and without them.
TEST_P(MaskSlice, LargeScoresStayFinite) {
  for (const DType dtype : kernel_->capabilities().dtypes) {
    if (dtype == DType::float16 && GetParam().dims.head_dim > 128) continue;  // not in every build
    for (const float scale : {1.0F, 3.0F, 8.0F}) {
      for (const int tokens : {130, 700, 2000}) {
        const Heads heads = tokens == 700 ? Heads{2, 2} : Heads{16, 1};
        Problem problem = problem_of(tokens, tokens, heads);
        problem.softmax_scale = scale;
        problem.dtype = dtype;
        for (const std::string name : {"full", "causal", "document", "shared_question"}) {
          expect_right(problem, small_mask(name, tokens, heads),
                       name + " of " + std::to_string(tokens) + ", scale " + std::to_string(scale) +
                           ", " + std::string(to_string(dtype)));
        }
      }
    }
  }
}

/// Likewise where work tiles with as many full tiles do not come in pairs.
TEST_P(MaskSlice, LargeScoresWithoutPairsStayFinite) {
  struct Case {
    const char* mask;
    std::int64_t tokens;
  };
  for (const float scale : {3.0F, 8.0F}) {
    for (const auto& [name, tokens] :
         {Case{"block_sparse", 3000}, Case{"causal", 1000}, Case{"block_sparse_variable", 3000},
          Case{"shared_question", 1000}}) {
      for (const Heads heads : {Heads{4, 4}, Heads{8, 1}}) {
        Problem problem = problem_of(tokens, tokens, heads);
        problem.softmax_scale = scale;
        expect_right(problem, small_mask(name, tokens, heads, "kv", 128),
                     std::string(name) + " of " + std::to_string(heads.q) + ":" +
                         std::to_string(heads.k) + ", scale " + std::to_string(scale));
      }
    }
  }
}

/// Where the row maxima of one head move, whose work tiles CTAs compute before and behind those of
/// others. In pairs of CTAs, and without.
TEST_P(MaskSlice, LargeScoresOfOneHeadLeaveTheOthersAlone) {
  struct Case {
    const char* mask;
    Heads heads;
  };
  for (const auto& [name, heads] :
       {Case{"causal", {32, 4}}, Case{"causal", {32, 32}}, Case{"block_sparse", {32, 32}}}) {
    SCOPED_TRACE(std::string(name) + ", KV heads: " + std::to_string(heads.k));
    expect_others_alone(problem_of(3000, 3000, heads), small_mask(name, 3000, heads, "kv", 128));
  }
}

/// Over two halves of the keys, one after the other: as over all at once. Large scores too, for
/// which row maxima move in full tiles.
TEST_P(MaskSlice, MergesIntoGivenResults) {
  struct Case {
    Heads heads;
    std::int64_t tokens;
    float scale;
  };
  for (const auto& [heads, tokens, scale] : {Case{{4, 4}, 300, 0.1F}, Case{{8, 1}, 300, 0.1F},
                                             Case{{4, 4}, 1500, 8.0F}, Case{{8, 1}, 1500, 8.0F}}) {
    SCOPED_TRACE(std::to_string(tokens) + " tokens, " + std::to_string(heads.q) + ":" +
                 std::to_string(heads.k));
    Problem problem = problem_of(tokens, tokens, heads);
    problem.softmax_scale = scale;
    const std::int64_t cut = tokens == 300 ? 130 : 700;
    const Inputs inputs = make_inputs(problem, kSeed);
    // Rows up to 100 see no key of the second part, and 30 of them none at all.
    const longca::MaskSlice first = {30, tokens, 0, cut, MaskSliceType::full};
    const longca::MaskSlice second = {100, tokens, cut, tokens, MaskSliceType::full};
    const Mask parts[] = {Mask::from_slices(tokens, tokens, {first}),
                          Mask::from_slices(tokens, tokens, {second})};
    MemoryTracker& memory = gpu().memory();
    const int dim = problem.value_dim();
    const Tensor sums(memory, DType::float32, tokens, heads.q, dim);
    const Outputs outputs(problem);
    gpu().fill(sums.view().data, 0xff, sums.bytes());  // LSE says that there is nothing
    const std::vector<float> nothing(static_cast<std::size_t>(tokens * heads.q),
                                     -std::numeric_limits<float>::infinity());
    gpu().copy(outputs.lse.view().data, nothing.data(), outputs.lse.bytes());
    Problem merging = problem;
    merging.accumulate = true;
    for (const Mask& part : parts) {
      ASSERT_EQ(kernel_->supports(merging, part).reason, "");
      ForwardArgs args = args_of(inputs, outputs);
      args.o = sums.view();
      args.accumulate = true;
      kernel_->plan(merging, part)->forward(args);
    }
    gpu().synchronize();
    std::vector<float> merged(static_cast<std::size_t>(tokens * heads.q * dim));
    gpu().copy(merged.data(), sums.view().data, sums.bytes());
    const auto unseen = static_cast<std::size_t>(30 * heads.q * dim);
    EXPECT_TRUE(std::all_of(merged.begin(), merged.begin() + static_cast<std::ptrdiff_t>(unseen),
                            [](float x) { return std::isnan(x); }))
        << "a row without keys was written";
    std::fill_n(merged.begin(), unseen, 0.0F);
    std::vector<BFloat16> rounded(merged.begin(), merged.end());
    gpu().copy(outputs.o.view().data, rounded.data(), outputs.o.bytes());
    const Mask whole = Mask::from_slices(tokens, tokens, {first, second});
    expect_right_outputs(problem, whole, inputs, outputs);
  }
}

/// In O and in LSE, of its row alone.
TEST_P(MaskSlice, ANaNReachesAGivenResult) {
  constexpr std::int64_t kTokens = 300;
  constexpr std::int64_t kRow = 200;
  constexpr std::uint16_t kNaN = 0x7fff;  // of bfloat16 and float16
  Problem problem = problem_of(kTokens, kTokens, {2, 2});
  problem.accumulate = true;
  const Inputs inputs = make_inputs(problem, kSeed);
  gpu().copy(inputs.q.view().row<std::uint16_t>(kRow, 1), &kNaN, sizeof kNaN);
  const int dim = problem.value_dim();
  const Tensor sums(gpu().memory(), DType::float32, kTokens, 2, dim);
  const Outputs outputs(problem);
  gpu().fill(sums.view().data, 0, sums.bytes());
  gpu().fill(outputs.lse.view().data, 0, outputs.lse.bytes());
  ForwardArgs args = args_of(inputs, outputs);
  args.o = sums.view();
  args.accumulate = true;
  kernel_->plan(problem, small_mask("causal", kTokens, {2, 2}))->forward(args);
  gpu().synchronize();
  std::vector<float> o(static_cast<std::size_t>(kTokens * 2 * dim));
  std::vector<float> lse(static_cast<std::size_t>(kTokens * 2));
  gpu().copy(o.data(), sums.view().data, sums.bytes());
  gpu().copy(lse.data(), outputs.lse.view().data, outputs.lse.bytes());
  const auto is_nan = [](float x) { return std::isnan(x); };
  EXPECT_EQ(std::ranges::count_if(lse, is_nan), 1);
  EXPECT_TRUE(std::isnan(lse[kTokens + kRow]));
  EXPECT_EQ(std::ranges::count_if(o, is_nan), dim);
  EXPECT_TRUE(std::isnan(o[(kRow * 2 + 1) * dim]));
}

TEST_P(MaskSlice, SaysWhichCodeRanAndHowManyHeadsItPacked) {
  const Heads heads = {8, 1};
  const auto plan =
      kernel_->plan(problem_of(1000, 1000, heads), small_mask("document", 1000, heads));
  const auto notes = plan->notes();
  EXPECT_EQ(notes.at("path"), GetParam().path == SlicePath::sm90 ? "sm_90a" : "mma.sync");
  EXPECT_NE(notes.at("pack"), "1");
  EXPECT_GT(plan->workspace_bytes(), 0);
}

TEST_P(MaskSlice, RefusesWhatItCannotDo) {
  const Mask causal = small_mask("causal", 64, {2, 2});
  Problem problem = problem_of(64, 64, {2, 2});
  problem.dtype = DType::float32;
  EXPECT_EQ(kernel_->supports(problem, causal).code, StatusCode::unsupported);
}

}  // namespace
}  // namespace longca::testing
