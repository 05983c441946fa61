// Blocked attention against attention by its definition, over random masks, shapes, dtypes,
// strides, instruction sets and thread counts.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "attention/cpu/blocked_plan.h"
#include "attention/cpu/dense_attention.h"
#include "attention/cpu/kernels.h"
#include "attention/cpu/random_problem.h"
#include "attention/reference/verifier.h"

namespace longca::test {
namespace {

/// A tensor whose rows have gaps between tokens and heads, or none.
class StridedTensor {
 public:
  StridedTensor(DType dtype, std::int64_t tokens, std::int64_t heads, std::int64_t dim, bool gaps)
      : owned_(dtype, tokens, heads + (gaps ? 1 : 0), dim + (gaps ? 3 : 0)), view_(owned_.view()) {
    poison(owned_.view());
    view_.heads = heads;
    view_.dim = dim;
  }
  StridedTensor(const ConstTensorView& from, bool gaps)
      : StridedTensor(from.dtype, from.tokens, from.heads, from.dim, gaps) {
    for (std::int64_t t = 0; t < from.tokens; ++t) {
      for (std::int64_t h = 0; h < from.heads; ++h) {
        with_type_of(from.dtype, [&]<typename T>(T) {
          std::copy_n(from.row<T>(t, h), from.dim, view_.row<T>(t, h));
        });
      }
    }
  }
  const TensorView& view() const { return view_; }
  const HostTensor& owned() const { return owned_; }

 private:
  HostTensor owned_;
  TensorView view_;
};

/// All tensors of one problem, outputs poisoned.
struct Tensors {
  StridedTensor q, k, v, dout, o, dq, dk, dv;
  HostLse lse;
  const float* sink;
  HostTensor dsink;

  Tensors(const Problem& p, const Inputs& inputs, bool gaps)
      : q(inputs.q.view(), gaps),
        k(inputs.k.view(), gaps),
        v(inputs.v.view(), gaps),
        dout(inputs.dout.view(), gaps),
        o(out_type(p), p.tokens_q, p.heads_q, p.value_dim(), gaps),
        dq(out_type(p), p.tokens_q, p.heads_q, p.head_dim, gaps),
        dk(out_type(p), p.tokens_k, p.heads_k, p.head_dim, gaps),
        dv(out_type(p), p.tokens_k, p.heads_k, p.value_dim(), gaps),
        lse(p.heads_q, p.tokens_q),
        sink(inputs.sink_logits()),
        dsink(DType::float32, 1, p.sink ? p.heads_q : 0, 1) {
    poison(dsink.view());
    poison(lse.view());
  }
  static DType out_type(const Problem& p) { return p.accumulate ? DType::float32 : p.dtype; }

  ForwardArgs forward() const {
    return {.q = q.view(),
            .k = k.view(),
            .v = v.view(),
            .o = o.view(),
            .lse = lse.view(),
            .sink = sink};
  }
  BackwardArgs backward() const {
    return {.dout = dout.view(),
            .q = q.view(),
            .k = k.view(),
            .v = v.view(),
            .o = o.view(),
            .lse = lse.view(),
            .dq = dq.view(),
            .dk = dk.view(),
            .dv = dv.view(),
            .sink = sink,
            .dsink = sink != nullptr ? dsink.view().row<float>(0, 0) : nullptr};
  }
};

/// Every element within `tolerance` of the largest of the tensor, or of 1; NaN fails.
testing::AssertionResult near(const char* name, const ConstTensorView& x, const Doubles& expected,
                              double tolerance) {
  double largest = 1;  // what cancels, such as the gradients of a row with one key, is of this size
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  for (std::int64_t t = 0; t < x.tokens; ++t) {
    for (std::int64_t h = 0; h < x.heads; ++h) {
      for (std::int64_t k = 0; k < x.dim; ++k) {
        const double difference = std::abs(element(x, t, h, k) - expected.row(t, h)[k]);
        if (difference <= tolerance * largest) continue;
        return testing::AssertionFailure()
               << name << "[" << t << ", " << h << ", " << k << "] = " << element(x, t, h, k)
               << ", expected " << expected.row(t, h)[k] << ", largest " << largest;
      }
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult lse_near(const ConstLseView& lse, const std::vector<double>& expected) {
  for (std::int64_t h = 0; h < lse.heads; ++h) {
    for (std::int64_t t = 0; t < lse.tokens; ++t) {
      const double want = expected[static_cast<std::size_t>(h * lse.tokens + t)];
      const double got = lse.head(h)[t];
      const bool equal = std::isinf(want) ? got == want : std::abs(got - want) <= 5e-6;
      if (!equal) {
        return testing::AssertionFailure()
               << "lse[" << h << ", " << t << "] = " << got << ", expected " << want;
      }
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult sinks_near(const HostTensor& dsink, const DenseAttention& expected,
                                    double tolerance) {
  double largest = 1;
  for (const double value : expected.dsink) largest = std::max(largest, std::abs(value));
  for (std::int64_t h = 0; h < dsink.view().heads; ++h) {
    const float found = dsink.view().row<float>(0, h)[0];
    const double want = expected.dsink[static_cast<std::size_t>(h)];
    if (std::abs(static_cast<double>(found) - want) <= tolerance * largest) continue;
    return testing::AssertionFailure() << "dsink[" << h << "] = " << found << ", expected " << want;
  }
  return testing::AssertionSuccess();
}

double tolerance(DType dtype) {
  return dtype == DType::float32 ? 1e-5 : 1e-2;
}

/// Forward and backward of one random problem against the definition.
void check_problem(DType dtype, std::uint32_t seed, const cpu::BlockedOptions& options) {
  std::mt19937 random(seed);
  const Problem problem = random_problem(dtype, random);
  const Mask mask =
      random_mask(problem.tokens_q, problem.tokens_k, problem.heads_q, problem.heads_k, random);
  const Inputs inputs = make_inputs(problem, seed);
  const DenseAttention expected = dense_attention(problem, mask, inputs);
  const Tensors x(problem, inputs, seed % 2 == 0);
  const auto plan = cpu::make_blocked_plan(problem, mask, options);
  plan->forward(x.forward());
  ASSERT_TRUE(lse_near(x.lse.view(), expected.lse));
  ASSERT_TRUE(near("o", x.o.view(), expected.o, tolerance(dtype)));
  plan->backward(x.backward());
  ASSERT_TRUE(near("dq", x.dq.view(), expected.dq, 2 * tolerance(dtype)));
  ASSERT_TRUE(near("dk", x.dk.view(), expected.dk, 2 * tolerance(dtype)));
  ASSERT_TRUE(near("dv", x.dv.view(), expected.dv, 2 * tolerance(dtype)));
  ASSERT_TRUE(sinks_near(x.dsink, expected, 2 * tolerance(dtype)));
}

/// Sanitizers make the float64 side slow; a quarter of the problems still meets every path.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kShare = 4;
#else
constexpr int kShare = 1;
#endif

void check_random_problems(DType dtype, int count, const cpu::BlockedOptions& options) {
  for (int i = 0; i < count / kShare; ++i) {
    const auto seed = static_cast<std::uint32_t>(i);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    check_problem(dtype, seed, options);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(BlockedAttention, AgreesWithTheDefinitionInFloat32) {
  check_random_problems(DType::float32, 60, {});
}

TEST(BlockedAttention, AgreesWithTheDefinitionInBFloat16) {
  check_random_problems(DType::bfloat16, 60, {});
}

TEST(BlockedAttention, AgreesWithTheDefinitionInBFloat16WithoutDotProducts) {
  check_random_problems(DType::bfloat16, 25, {.bf16_products = false});
}

TEST(BlockedAttention, AgreesWithTheDefinitionInFloat16) {
  check_random_problems(DType::float16, 60, {});
}

TEST(BlockedAttention, TilesMayFollowBlocks) {
  check_random_problems(DType::float32, 30, {.cut = cpu::TileCut::blocks});
  check_random_problems(DType::bfloat16, 30, {.cut = cpu::TileCut::blocks});
}

TEST(BlockedAttention, AgreesWithTheDefinitionOnEveryInstructionSet) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_STREQ(cpu::float32_kernels().name, hwy::TargetName(target));
    check_random_problems(DType::float32, 8, {});
    check_random_problems(DType::bfloat16, 8, {});
    hwy::SetSupportedTargetsForTest(0);
  }
}

/// Forward with NaN in one row of q: its results are NaN if it sees a key, and all others have the
/// bits that they have without it. Adds to `rows` those that became NaN.
void check_row_of_nan(DType dtype, std::uint32_t seed, int& rows) {
  std::mt19937 random(seed);
  Problem problem = random_problem(dtype, random);
  problem.sink = false;
  const Mask mask =
      random_mask(problem.tokens_q, problem.tokens_k, problem.heads_q, problem.heads_k, random);
  if (problem.tokens_q == 0 || problem.tokens_k == 0) return;
  const Inputs inputs = make_inputs(problem, seed);
  const Tensors clean(problem, inputs, false);
  const Tensors x(problem, inputs, false);
  const std::int64_t row = problem.tokens_q / 2;
  with_type_of(dtype, [&]<typename T>(T) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(x.q.view().row<T>(row, 0), problem.head_dim, static_cast<T>(nan));
  });
  const auto plan = cpu::make_blocked_plan(problem, mask, {});
  plan->forward(clean.forward());
  plan->forward(x.forward());
  for (std::int64_t t = 0; t < problem.tokens_q; ++t) {
    for (std::int64_t h = 0; h < problem.heads_q; ++h) {
      const float lse = clean.lse.view().head(h)[t];
      const bool is_nan = t == row && h == 0 && lse != -std::numeric_limits<float>::infinity();
      const float found = x.lse.view().head(h)[t];
      ASSERT_TRUE(is_nan ? std::isnan(found) : found == lse) << "lse[" << h << ", " << t << "]";
      rows += is_nan ? 1 : 0;
      for (std::int64_t k = 0; k < problem.value_dim(); ++k) {
        const double o = element(x.o.view(), t, h, k);
        ASSERT_TRUE(is_nan ? std::isnan(o) : o == element(clean.o.view(), t, h, k))
            << "o[" << t << ", " << h << ", " << k << "] = " << o;
      }
    }
  }
}

TEST(BlockedAttention, ARowOfNaNIsNotOneWithoutKeys) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    int rows = 0;
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(seed);
      for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
        check_row_of_nan(dtype, seed, rows);
      }
    }
    EXPECT_GT(rows, 12) << "of 36 problems most have a key for their row";
    hwy::SetSupportedTargetsForTest(0);
  }
}

/// The tokens [range.begin, range.end) of a tensor.
template <typename View>
View slice(View view, Range range) {
  view.data = static_cast<char*>(const_cast<void*>(static_cast<const void*>(view.data))) +
              range.begin * view.token_stride * size_of(view.dtype);
  view.tokens = range.size();
  return view;
}

void clear(const TensorView& x) {
  for (std::int64_t t = 0; t < x.tokens; ++t) {
    for (std::int64_t h = 0; h < x.heads; ++h) std::fill_n(x.row<float>(t, h), x.dim, 0.0F);
  }
}

/// Runs the keys in two parts, each with a plan of its own that adds to what is there. One of them
/// takes the sinks.
void run_in_two_parts(const Problem& whole, const Mask& mask, std::int64_t cut, const Tensors& x) {
  const Range rows[] = {{0, whole.tokens_q}};
  const auto each_part = [&](auto&& body) {
    bool has_sinks = false;
    for (const Range keys : {Range{cut, whole.tokens_k}, Range{0, cut}}) {
      Problem part = whole;
      part.tokens_k = keys.size();
      body(keys, !std::exchange(has_sinks, true),
           *cpu::make_blocked_plan(part, mask.sub_mask(rows, {&keys, 1}), {}));
    }
  };
  std::fill_n(x.lse.view().data, whole.heads_q * whole.tokens_q,
              -std::numeric_limits<float>::infinity());
  each_part([&](Range keys, bool takes_sinks, Plan& plan) {
    ForwardArgs args = x.forward();
    args.k = slice(args.k, keys);
    args.v = slice(args.v, keys);
    args.accumulate = true;
    if (!takes_sinks) args.sink = nullptr;
    plan.forward(args);
  });
  for (const TensorView& gradient : {x.dq.view(), x.dk.view(), x.dv.view(), x.dsink.view()}) {
    clear(gradient);
  }
  each_part([&](Range keys, bool takes_sinks, Plan& plan) {
    BackwardArgs args = x.backward();
    args.k = slice(args.k, keys);
    args.v = slice(args.v, keys);
    args.dk = slice(args.dk, keys);
    args.dv = slice(args.dv, keys);
    args.accumulate = true;
    if (!takes_sinks) args.dsink = nullptr;
    plan.backward(args);
  });
}

void check_accumulation(DType dtype, std::uint32_t seed) {
  std::mt19937 random(seed);
  Problem problem = random_problem(dtype, random);
  problem.accumulate = true;
  const Mask mask =
      random_mask(problem.tokens_q, problem.tokens_k, problem.heads_q, problem.heads_k, random);
  const std::int64_t cut = std::uniform_int_distribution<std::int64_t>(0, problem.tokens_k)(random);
  const Inputs inputs = make_inputs(problem, seed);
  const DenseAttention expected = dense_attention(problem, mask, inputs);
  const Tensors x(problem, inputs, seed % 2 == 0);
  run_in_two_parts(problem, mask, cut, x);
  ASSERT_TRUE(lse_near(x.lse.view(), expected.lse));
  ASSERT_TRUE(near("o", x.o.view(), expected.o, tolerance(dtype)));
  ASSERT_TRUE(near("dq", x.dq.view(), expected.dq, 2 * tolerance(dtype)));
  ASSERT_TRUE(near("dk", x.dk.view(), expected.dk, 2 * tolerance(dtype)));
  ASSERT_TRUE(near("dv", x.dv.view(), expected.dv, 2 * tolerance(dtype)));
  ASSERT_TRUE(sinks_near(x.dsink, expected, 2 * tolerance(dtype)));
}

TEST(BlockedAttention, PartsOfTheKeysAddUpToTheWhole) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (std::uint32_t seed = 1000; seed < 1000 + 24 / kShare; ++seed) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", seed " << seed);
      ASSERT_NO_FATAL_FAILURE(check_accumulation(dtype, seed));
    }
  }
}

/// Every byte of the outputs.
std::string output_bytes(const Tensors& x) {
  std::string bytes(reinterpret_cast<const char*>(x.lse.view().data),
                    static_cast<std::size_t>(x.lse.bytes()));
  for (const StridedTensor* t : {&x.o, &x.dq, &x.dk, &x.dv}) {
    bytes.append(static_cast<const char*>(t->owned().view().data),
                 static_cast<std::size_t>(t->owned().bytes()));
  }
  bytes.append(static_cast<const char*>(x.dsink.view().data),
               static_cast<std::size_t>(x.dsink.bytes()));
  return bytes;
}

std::string outputs_of(const Problem& problem, const Mask& mask, const Inputs& inputs,
                       int threads) {
  ThreadPool pool(threads);
  const Tensors x(problem, inputs, false);
  const auto plan = cpu::make_blocked_plan(problem, mask, {.pool = &pool});
  plan->forward(x.forward());
  plan->backward(x.backward());
  return output_bytes(x);
}

TEST(BlockedAttention, DoesNotDependOnTheThreadsToTheBit) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (std::uint32_t seed = 0; seed < 8 / kShare; ++seed) {
      Problem problem{.tokens_q = 700,
                      .tokens_k = 900,
                      .heads_q = 6,
                      .heads_k = 2,
                      .head_dim = 64,
                      .dtype = dtype};
      problem.backward = true;
      std::mt19937 random(seed);
      const Mask mask = random_mask(problem.tokens_q, problem.tokens_k, 6, 2, random);
      const Inputs inputs = make_inputs(problem, seed);
      const std::string one = outputs_of(problem, mask, inputs, 1);
      for (const int threads : {2, 3, 8}) {
        EXPECT_TRUE(outputs_of(problem, mask, inputs, threads) == one)
            << to_string(dtype) << ", seed " << seed << ", " << threads << " threads";
      }
    }
  }
}

TEST(BlockedAttention, RepeatedCallsOfAPlanAgree) {
  std::mt19937 random(7);
  const Problem problem{.tokens_q = 300,
                        .tokens_k = 300,
                        .heads_q = 2,
                        .heads_k = 1,
                        .head_dim = 64,
                        .dtype = DType::bfloat16,
                        .softmax_scale = 0.2F,
                        .backward = true};
  const Mask mask = random_mask(300, 300, 2, 1, random);
  const Inputs inputs = make_inputs(problem, 1);
  const auto plan = cpu::make_blocked_plan(problem, mask, {});
  std::string first;
  for (int call = 0; call < 3; ++call) {
    const Tensors x(problem, inputs, false);
    plan->forward(x.forward());
    plan->backward(x.backward());
    if (call == 0) first = output_bytes(x);
    EXPECT_TRUE(output_bytes(x) == first) << "call " << call;
  }
}

TEST(BlockedAttention, RowsAndKeysOutsideTheMaskAreExactlyZero) {
  const Problem problem{.tokens_q = 200,
                        .tokens_k = 300,
                        .heads_q = 2,
                        .heads_k = 1,
                        .head_dim = 64,
                        .backward = true};
  const Mask mask = Mask::from_slices(200, 300, {{50, 100, 120, 170, MaskSliceType::full}});
  const Inputs inputs = make_inputs(problem, 3);
  const Tensors x(problem, inputs, true);
  const auto plan = make_flash_cpu()->plan(problem, mask);
  plan->forward(x.forward());
  plan->backward(x.backward());
  for (std::int64_t q = 0; q < 200; ++q) {
    const bool seen = q >= 50 && q < 100;
    EXPECT_EQ(x.lse.view().head(1)[q] == -std::numeric_limits<float>::infinity(), !seen);
    EXPECT_EQ(x.o.view().row<float>(q, 1)[5] == 0.0F, !seen);
    EXPECT_EQ(x.dq.view().row<float>(q, 1)[5] == 0.0F, !seen);
  }
  for (std::int64_t k = 0; k < 300; ++k) {
    EXPECT_EQ(x.dk.view().row<float>(k, 0)[5] == 0.0F, k < 120 || k >= 170);
    EXPECT_EQ(x.dv.view().row<float>(k, 0)[5] == 0.0F, k < 120 || k >= 170);
  }
}

/// Heads with a sink of −∞ are those of the problem without sinks, to the bit, and their sinks have
/// no gradient, also where rows have no key.
TEST(BlockedAttention, ASinkOfMinusInfinityIsNone) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const Mask mask = Mask::from_slices(200, 300, {{50, 100, 120, 170, MaskSliceType::full}});
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    Problem problem{.tokens_q = 200,
                    .tokens_k = 300,
                    .heads_q = 2,
                    .heads_k = 2,
                    .head_dim = 64,
                    .dtype = dtype,
                    .backward = true};
    const auto solved = [&](const Inputs& inputs) {
      Tensors x(problem, inputs, false);
      const auto plan = make_flash_cpu()->plan(problem, mask);
      plan->forward(x.forward());
      plan->backward(x.backward());
      return x;
    };
    const Tensors without = solved(make_inputs(problem, 3));
    problem.sink = true;
    const Inputs inputs = make_inputs(problem, 3);
    for (int head : {0, 1}) inputs.sink.view().row<float>(0, head)[0] = kNone;
    const Tensors with = solved(inputs);
    EXPECT_EQ(with.lse.view().head(1)[7], kNone);
    EXPECT_EQ(element(with.o.view(), 7, 1, 5), 0);
    for (int head : {0, 1}) EXPECT_EQ(with.dsink.view().row<float>(0, head)[0], 0);
    // dsink comes last.
    EXPECT_TRUE(output_bytes(with).starts_with(output_bytes(without)));
  }
}

/// Expects that of rows with one key each dq and dk are exactly 0, and o exactly v.
void check_rows_of_one_key(DType dtype, std::int64_t dim, std::uint64_t seed) {
  constexpr std::int64_t kRows = 67;
  const Problem problem{.tokens_q = kRows,
                        .tokens_k = kRows,
                        .heads_q = 3,
                        .heads_k = 3,
                        .head_dim = static_cast<int>(dim),
                        .dtype = dtype,
                        .backward = true};
  std::vector<MaskSlice> slices;
  for (std::int64_t i = 0; i < kRows; ++i)
    slices.push_back({i, i + 1, i, i + 1, MaskSliceType::full});
  const Inputs inputs = make_inputs(problem, seed);
  const Tensors x(problem, inputs, seed % 2 == 0);
  const auto plan = make_flash_cpu()->plan(problem, Mask::from_slices(kRows, kRows, slices));
  plan->forward(x.forward());
  plan->backward(x.backward());
  const auto value = [](const TensorView& t, std::int64_t row, std::int64_t head, std::int64_t c) {
    return t.dtype == DType::float32 ? t.row<float>(row, head)[c]
                                     : static_cast<float>(t.row<BFloat16>(row, head)[c]);
  };
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t head = 0; head < 3; ++head) {
      for (std::int64_t c = 0; c < dim; ++c) {
        ASSERT_EQ(value(x.o.view(), row, head, c), value(x.v.view(), row, head, c));
        ASSERT_EQ(value(x.dq.view(), row, head, c), 0);
        ASSERT_EQ(value(x.dk.view(), row, head, c), 0);
      }
    }
  }
}

TEST(BlockedAttention, RowsOfOneKeyHaveNoGradientOfScores) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      for (const std::int64_t dim : {128, 40, 7}) {
        for (std::uint64_t seed = 0; seed < 6 / kShare; ++seed) {
          ASSERT_NO_FATAL_FAILURE(check_rows_of_one_key(dtype, dim, seed));
        }
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(BlockedAttention, CountsItsWorkspace) {
  const Problem problem{
      .tokens_q = 500, .tokens_k = 500, .heads_q = 2, .heads_k = 2, .head_dim = 128};
  const Mask mask = Mask::from_slices(500, 500, {{0, 500, 0, 500, MaskSliceType::causal}});
  const auto forward = make_flash_cpu()->plan(problem, mask);
  Problem both = problem;
  both.backward = true;
  const auto backward = make_flash_cpu()->plan(both, mask);
  EXPECT_GE(forward->workspace_bytes(), 2 * 500 * 2 * 128 * 4);  // packed keys and values
  EXPECT_GT(backward->workspace_bytes(), forward->workspace_bytes());
}

TEST(BlockSparse, IsForMasksWithBlocksOnly) {
  const Problem problem{.tokens_q = 64, .tokens_k = 64};
  const Mask full = Mask::from_slices(64, 64, {{0, 64, 0, 64, MaskSliceType::full}});
  EXPECT_EQ(make_block_sparse_cpu()->supports(problem, full).code, StatusCode::unsupported);
  EXPECT_TRUE(make_flash_cpu()->supports(problem, full).ok());
}

}  // namespace
}  // namespace longca::test
