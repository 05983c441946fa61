#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <longca.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capi/handle.h"

namespace longca::testing {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr std::int64_t kHeadsQ = 4;
constexpr std::int64_t kHeadsK = 2;
constexpr std::int64_t kDim = 16;

longca_problem small_problem() {
  longca_problem problem = LONGCA_PROBLEM_INIT;
  problem.heads_q = kHeadsQ;
  problem.heads_k = kHeadsK;
  problem.head_dim = kDim;
  problem.backward = 1;
  return problem;
}

PlanHandle plan_of(const longca_problem& problem, const longca_mask* mask) {
  longca_plan* plan = nullptr;
  EXPECT_EQ(longca_plan_create(&problem, mask, &plan), LONGCA_OK) << longca_last_error();
  return own(plan);
}

/// The tensors of one attention.
struct Tensors {
  std::int64_t tokens;
  std::int64_t dim_v;
  std::vector<float> q, k, v, o, lse, dout, dq, dk, dv;
  std::vector<float> sink{-1, 0, 1, 2};  ///< [kHeadsQ]
  std::vector<float> dsink = std::vector<float>(4, std::numeric_limits<float>::quiet_NaN());

  explicit Tensors(std::int64_t n, unsigned seed = 1, std::int64_t of_values = kDim)
      : tokens(n), dim_v(of_values) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& x, std::int64_t row) {
      x.resize(static_cast<std::size_t>(n * row));
      std::ranges::generate(x, [&] { return normal(random); });
    };
    fill(q, kHeadsQ * kDim);
    fill(dout, kHeadsQ * dim_v);
    fill(k, kHeadsK * kDim);
    fill(v, kHeadsK * dim_v);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    o.assign(dout.size(), nan);
    dq.assign(q.size(), nan);
    dk.assign(k.size(), nan);
    dv.assign(v.size(), nan);
    lse.assign(static_cast<std::size_t>(kHeadsQ * n), nan);
  }

  longca_tensor view(std::vector<float>& x, std::int64_t heads, std::int64_t dim) const {
    return {x.data(), tokens, heads, dim, heads * dim, dim};
  }
  longca_forward_arguments forward() {
    return {view(q, kHeadsQ, kDim),
            view(k, kHeadsK, kDim),
            view(v, kHeadsK, dim_v),
            view(o, kHeadsQ, dim_v),
            {lse.data(), kHeadsQ, tokens, tokens},
            nullptr,
            sink.data()};
  }
  longca_backward_arguments backward() {
    return {view(dout, kHeadsQ, dim_v),
            view(q, kHeadsQ, kDim),
            view(k, kHeadsK, kDim),
            view(v, kHeadsK, dim_v),
            view(o, kHeadsQ, dim_v),
            {lse.data(), kHeadsQ, tokens, tokens},
            view(dq, kHeadsQ, kDim),
            view(dk, kHeadsK, kDim),
            view(dv, kHeadsK, dim_v),
            nullptr,
            sink.data(),
            dsink.data()};
  }
  void run(longca_plan* plan) {
    const auto f = forward();
    ASSERT_EQ(longca_forward(plan, &f), LONGCA_OK) << longca_last_error();
    const auto b = backward();
    ASSERT_EQ(longca_backward(plan, &b), LONGCA_OK) << longca_last_error();
  }
};

/// o of one row, in float64 from the inputs.
std::vector<float> exact_row(const Tensors& t, std::int64_t row, std::int64_t head,
                             std::int64_t first_key) {
  const auto q = [&](std::int64_t i) {
    return double{t.q[static_cast<std::size_t>((row * kHeadsQ + head) * kDim + i)]};
  };
  const auto of_key = [&](const std::vector<float>& x, std::int64_t key, std::int64_t i) {
    const std::int64_t kv_head = head * kHeadsK / kHeadsQ;
    const std::int64_t dim = std::ssize(x) / (t.tokens * kHeadsK);
    return double{x[static_cast<std::size_t>((key * kHeadsK + kv_head) * dim + i)]};
  };
  std::vector<double> sums(static_cast<std::size_t>(t.dim_v));
  double weights = 0;
  for (std::int64_t key = first_key; key <= row; ++key) {
    double score = 0;
    for (std::int64_t i = 0; i < kDim; ++i) score += q(i) * of_key(t.k, key, i);
    const double weight = std::exp(score / std::sqrt(double{kDim}));
    weights += weight;
    for (std::int64_t i = 0; i < t.dim_v; ++i) {
      sums[static_cast<std::size_t>(i)] += weight * of_key(t.v, key, i);
    }
  }
  std::vector<float> o;
  for (const double sum : sums) o.push_back(static_cast<float>(sum / weights));
  return o;
}

TEST(CapiAttention, PackedDocumentsAreWhatTheFormulaSays) {
  const MaskHandle mask = packed_documents({0, 13, 50});
  const PlanHandle plan = plan_of(small_problem(), mask.get());
  Tensors t(50);
  t.run(plan.get());
  EXPECT_STREQ(longca_plan_kernel(plan.get()), "flash");
  EXPECT_GT(longca_plan_workspace_bytes(plan.get()), 0);
  for (std::int64_t row = 0; row < 50; ++row) {
    for (std::int64_t head = 0; head < kHeadsQ; ++head) {
      const float* o = t.o.data() + (row * kHeadsQ + head) * kDim;
      EXPECT_THAT(std::vector<float>(o, o + kDim),
                  Pointwise(FloatNear(1e-5F), exact_row(t, row, head, row < 13 ? 0 : 13)))
          << row << ", " << head;
    }
  }
  EXPECT_TRUE(std::ranges::none_of(t.dq, [](float x) { return std::isnan(x); }));
}

/// Of a v of 9 dimensions beside q and k of 16: the same attention with seven zeros behind each of
/// its rows has the same dq and dk, and o and dv with seven zeros more.
TEST(CapiAttention, AVOfASmallerDimensionIsOneWithZerosBehind) {
  constexpr std::int64_t kDimV = 9;
  longca_mask* blocks = nullptr;
  longca_mask_options options = LONGCA_MASK_OPTIONS_INIT;
  options.block = 10;
  ASSERT_EQ(longca_mask_named("block_sparse", 50, &options, &blocks), LONGCA_OK);
  const MaskHandle masks[] = {packed_documents({0, 13, 50}), own(blocks)};
  for (const auto& [kernel, mask] : {std::pair{"flash", masks[0].get()},
                                     {"naive", masks[0].get()},
                                     {"block_sparse", masks[1].get()}}) {
    longca_problem problem = small_problem();
    problem.kernel = kernel;
    const auto widened = [](const std::vector<float>& x) {
      std::vector<float> wide(x.size() / kDimV * kDim);
      for (std::size_t i = 0; i < x.size(); ++i) wide[i / kDimV * kDim + i % kDimV] = x[i];
      return wide;
    };
    Tensors narrow(50, 1, kDimV);
    Tensors wide(50);
    wide.q = narrow.q;
    wide.k = narrow.k;
    wide.v = widened(narrow.v);
    wide.dout = widened(narrow.dout);
    wide.run(plan_of(problem, mask).get());
    problem.head_dim_v = kDimV;
    const PlanHandle plan = plan_of(problem, mask);
    EXPECT_STREQ(longca_plan_kernel(plan.get()), kernel);
    narrow.run(plan.get());
    constexpr float kNear = 1e-5F;
    EXPECT_THAT(widened(narrow.o), Pointwise(FloatNear(kNear), wide.o)) << kernel;
    EXPECT_THAT(narrow.lse, Pointwise(FloatNear(kNear), wide.lse)) << kernel;
    EXPECT_THAT(narrow.dq, Pointwise(FloatNear(kNear), wide.dq)) << kernel;
    EXPECT_THAT(narrow.dk, Pointwise(FloatNear(kNear), wide.dk)) << kernel;
    EXPECT_THAT(widened(narrow.dv), Pointwise(FloatNear(kNear), wide.dv)) << kernel;
    if (kernel == std::string("block_sparse")) continue;
    EXPECT_THAT(std::vector<float>(narrow.o.end() - kDimV, narrow.o.end()),
                Pointwise(FloatNear(kNear), exact_row(narrow, 49, kHeadsQ - 1, 13)))
        << kernel;
  }
}

TEST(CapiAttention, ADimensionOfVThatDoesNotFitIsNamed) {
  const MaskHandle mask = packed_documents({0, 32});
  longca_problem problem = small_problem();
  longca_plan* plan = nullptr;
  for (const std::int32_t dim : {-1, 17, std::numeric_limits<std::int32_t>::max()}) {
    problem.head_dim_v = dim;
    EXPECT_EQ(longca_plan_create(&problem, mask.get(), &plan), LONGCA_INVALID_ARGUMENT);
    EXPECT_EQ(longca_last_error(), "head_dim_v = " + std::to_string(dim) +
                                       ": from 1 to head_dim = 16, or 0 for as many");
  }
  problem.head_dim_v = 12;
  const PlanHandle narrow = plan_of(problem, mask.get());
  Tensors t(32, 1, 12);
  t.run(narrow.get());
  auto f = t.forward();
  f.v.dim = kDim;
  EXPECT_EQ(longca_forward(narrow.get(), &f), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "v is [32, 2, 16], the plan's is [32, 2, 12]");
  f = t.forward();
  f.o.dim = kDim;
  EXPECT_EQ(longca_forward(narrow.get(), &f), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "o is [32, 4, 16], the plan's is [32, 4, 12]");
  auto b = t.backward();
  b.dout.dim = kDim;
  EXPECT_EQ(longca_backward(narrow.get(), &b), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "dout is [32, 4, 16], the plan's is [32, 4, 12]");
  b = t.backward();
  b.dk.dim = 12;
  EXPECT_EQ(longca_backward(narrow.get(), &b), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "dk is [32, 2, 12], the plan's is [32, 2, 16]");
}

/// A program that was compiled before longca_problem had a sink and a head_dim_v.
TEST(CapiAttention, WhatAnOlderHeaderDoesNotKnowIsAsByDefault) {
  const MaskHandle mask = packed_documents({0, 32});
  longca_problem problem = small_problem();
  problem.struct_size = offsetof(longca_problem, sink);
  problem.sink = 7;
  problem.head_dim_v = -3;
  Tensors t(32);
  t.run(plan_of(problem, mask.get()).get());
  EXPECT_TRUE(std::isnan(t.dsink[0]));
}

TEST(CapiAttention, ASinkJoinsTheDenominatorAndItsGradientIsWritten) {
  const MaskHandle mask = packed_documents({0, 13, 50});
  longca_problem problem = small_problem();
  Tensors without(50);
  without.run(plan_of(problem, mask.get()).get());
  EXPECT_TRUE(std::isnan(without.dsink[0])) << "not read nor written with sink = 0";
  problem.sink = 1;
  Tensors t(50);
  t.run(plan_of(problem, mask.get()).get());
  for (std::size_t head = 0; head < kHeadsQ; ++head) {
    double dsink = 0;
    for (std::size_t row = 0; row < 50; ++row) {
      const double keys = double{without.lse[head * 50 + row]};
      const double both = std::log(std::exp(keys) + std::exp(double{t.sink[head]}));
      EXPECT_NEAR(t.lse[head * 50 + row], both, 1e-5) << head << ", " << row;
      double delta = 0;
      for (std::size_t i = 0; i < kDim; ++i) {
        const std::size_t at = (row * kHeadsQ + head) * kDim + i;
        EXPECT_NEAR(t.o[at], double{without.o[at]} * std::exp(keys - both), 1e-5);
        delta += double{t.o[at]} * double{t.dout[at]};
      }
      dsink -= std::exp(double{t.sink[head]} - both) * delta;
    }
    EXPECT_NEAR(t.dsink[head], dsink, 1e-4);
  }
}

/// The first 20 rows have no key.
TEST(CapiAttention, ASinkOfMinusInfinityIsNone) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const longca_slice slice{20, 50, 0, 50, LONGCA_SLICE_FULL, 0};
  longca_mask* made = nullptr;
  ASSERT_EQ(longca_mask_from_slices(50, 50, &slice, 1, &made), LONGCA_OK);
  const MaskHandle mask = own(made);
  for (const char* kernel : {"flash", "naive"}) {
    longca_problem problem = small_problem();
    problem.kernel = kernel;
    Tensors without(50);
    without.run(plan_of(problem, mask.get()).get());
    problem.sink = 1;
    Tensors t(50);
    t.sink.assign(kHeadsQ, kNone);
    t.run(plan_of(problem, mask.get()).get());
    EXPECT_EQ(t.lse, without.lse) << kernel;
    EXPECT_EQ(t.lse.front(), kNone) << kernel;
    EXPECT_EQ(t.o, without.o) << kernel;
    EXPECT_EQ(t.o.front(), 0) << kernel;
    EXPECT_EQ(t.dq, without.dq) << kernel;
    EXPECT_EQ(t.dk, without.dk) << kernel;
    EXPECT_EQ(t.dv, without.dv) << kernel;
    EXPECT_EQ(t.dsink, std::vector<float>(kHeadsQ, 0)) << kernel;
  }
}

TEST(CapiAttention, SinksAndSoftcapsThatDoNotFitAreNamed) {
  const MaskHandle mask = packed_documents({0, 32});
  const auto refused = [&](double softcap, std::int32_t sink) -> std::string {
    longca_problem problem = small_problem();
    problem.softcap = softcap;
    problem.sink = sink;
    longca_plan* plan = nullptr;
    EXPECT_EQ(longca_plan_create(&problem, mask.get(), &plan), LONGCA_INVALID_ARGUMENT);
    return longca_last_error();
  };
  EXPECT_EQ(refused(-30, 0), "softcap = -30: 0, or from 0.001 to 1000000");
  EXPECT_THAT(refused(std::numeric_limits<double>::infinity(), 0), HasSubstr("softcap = inf"));
  EXPECT_EQ(refused(0, 2), "sink = 2: 0 or 1");

  longca_problem problem = small_problem();
  problem.sink = 1;
  problem.softcap = 30;
  const PlanHandle plan = plan_of(problem, mask.get());
  Tensors t(32);
  auto forward = t.forward();
  forward.sink = nullptr;
  EXPECT_EQ(longca_forward(plan.get(), &forward), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "sink is NULL");
  auto backward = t.backward();
  backward.dsink = nullptr;
  EXPECT_EQ(longca_backward(plan.get(), &backward), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "dsink is NULL");
}

TEST(CapiAttention, ThreadsShareAPlan) {
  const MaskHandle mask = packed_documents({0, 100, 160});
  const PlanHandle plan = plan_of(small_problem(), mask.get());
  std::vector<Tensors> expected;
  for (unsigned seed = 0; seed < 4; ++seed) expected.emplace_back(160, seed).run(plan.get());
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (int i = 0; i < 10; ++i) {
        Tensors t(160, seed);
        t.run(plan.get());
        equal += t.o == expected[seed].o && t.dq == expected[seed].dq && t.dv == expected[seed].dv;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 40);
}

struct Counter {
  std::atomic<std::int64_t> bytes{0};
  bool refuse = false;
};

TEST(CapiAttention, WorkspaceComesFromTheCallersAllocatorAndGoesBackToIt) {
  Counter counter;
  longca_allocator allocator{&counter,
                             [](void* context, std::size_t bytes) -> void* {
                               auto& c = *static_cast<Counter*>(context);
                               if (c.refuse) return nullptr;
                               c.bytes += static_cast<std::int64_t>(bytes);
                               return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
                             },
                             [](void* context, void* memory, std::size_t bytes) {
                               static_cast<Counter*>(context)->bytes -=
                                   static_cast<std::int64_t>(bytes);
                               std::free(memory);
                             }};
  longca_problem problem = small_problem();
  problem.allocator = &allocator;
  const MaskHandle mask = packed_documents({0, 64});
  {
    const PlanHandle plan = plan_of(problem, mask.get());
    EXPECT_GT(counter.bytes, 64 * kHeadsK * kDim * 4);
    Tensors t(64);
    t.run(plan.get());
  }
  EXPECT_EQ(counter.bytes, 0);
  EXPECT_EQ(longca_plan_create(&problem, mask.get(), nullptr), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "plan is NULL");
  EXPECT_EQ(counter.bytes, 0);
  counter.refuse = true;
  longca_plan* plan = nullptr;
  EXPECT_EQ(longca_plan_create(&problem, mask.get(), &plan), LONGCA_OUT_OF_MEMORY);
  EXPECT_THAT(longca_last_error(), HasSubstr("the caller's allocator gave no "));
  EXPECT_EQ(plan, nullptr);
  EXPECT_EQ(counter.bytes, 0);
}

TEST(CapiAttention, RefusalsHaveAStatusAndASentence) {
  const MaskHandle mask = packed_documents({0, 32});
  const auto expect = [&](const longca_problem& problem, longca_status status,
                          const std::string& sentence) {
    longca_plan* plan = nullptr;
    EXPECT_EQ(longca_plan_create(&problem, mask.get(), &plan), status) << sentence;
    EXPECT_THAT(longca_last_error(), HasSubstr(sentence));
    EXPECT_EQ(plan, nullptr);
  };
  longca_problem problem = small_problem();
  problem.heads_k = 3;
  expect(problem, LONGCA_INVALID_ARGUMENT, "heads 4:3");
  problem = small_problem();
  problem.kernel = "block_sparse";
  expect(problem, LONGCA_UNSUPPORTED, "block_sparse takes block-sparse masks only");
  problem = small_problem();
  problem.kernel = "flahs";
  expect(problem, LONGCA_INVALID_ARGUMENT, "'flash'");
  problem = small_problem();
  for (const double scale : {-1.0, 1e-46, 1e-40, 1e39, std::nan("")}) {
    problem.scale = scale;
    expect(problem, LONGCA_INVALID_ARGUMENT,
           "from 1.1754944e-38 to 3.4028235e+38, or 0 for 1/√head_dim");
  }
  EXPECT_THAT(longca_last_error(), HasSubstr("scale = nan: "));
  problem = small_problem();
  problem.struct_size = offsetof(longca_problem, scale) + 4;
  expect(problem, LONGCA_INVALID_ARGUMENT, "struct_size of longca_problem is 44");
  problem = small_problem();
  problem.kernel = "block_sparse";
  expect(problem, LONGCA_UNSUPPORTED, "block_sparse takes block-sparse masks only");
}

TEST(CapiAttention, TensorsThatDoNotFitThePlanAreNamed) {
  const MaskHandle mask = packed_documents({0, 32});
  longca_problem problem = small_problem();
  problem.backward = 0;
  const PlanHandle plan = plan_of(problem, mask.get());
  Tensors t(32);
  auto f = t.forward();
  f.k.tokens = 31;
  EXPECT_EQ(longca_forward(plan.get(), &f), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("k is [31, 2, 16], the plan's is [32, 2, 16]"));
  f = t.forward();
  f.o.data = nullptr;
  EXPECT_EQ(longca_forward(plan.get(), &f), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("o has no data"));
  f = t.forward();
  f.q.data = static_cast<char*>(f.q.data) + 1;
  EXPECT_EQ(longca_forward(plan.get(), &f), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("q lies at 0x"));
  EXPECT_THAT(longca_last_error(), HasSubstr("no multiple of its elements' 4 bytes"));
  f = t.forward();
  f.lse.head_stride = std::int64_t{1} << 62;
  EXPECT_EQ(longca_forward(plan.get(), &f), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("too large for 4 heads"));
  const auto b = t.backward();
  EXPECT_EQ(longca_backward(plan.get(), &b), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("problem.backward = 0"));
}

TEST(CapiAttention, RowsOfWrittenTensorsMayNotOverlap) {
  const MaskHandle mask = packed_documents({0, 32});
  const PlanHandle plan = plan_of(small_problem(), mask.get());
  Tensors t(32);
  const auto status = [&](std::int64_t token_stride, std::int64_t head_stride) {
    auto f = t.forward();
    f.o.token_stride = token_stride;
    f.o.head_stride = head_stride;
    return longca_forward(plan.get(), &f);
  };
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(status(kHeadsQ * kDim, kDim), LONGCA_OK);
  EXPECT_EQ(status(kDim, 32 * kDim), LONGCA_OK) << "[heads, tokens, dim]";
  for (const auto& [tokens, heads] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, kDim},
                                                          {2, kDim},
                                                          {kHeadsQ * kDim, 0},
                                                          {kHeadsQ * kDim - 1, kDim},
                                                          {kDim, 32 * kDim - 1},
                                                          {kDim, kDim}}) {
    EXPECT_EQ(status(tokens, heads), LONGCA_INVALID_ARGUMENT) << tokens << ", " << heads;
    EXPECT_THAT(longca_last_error(), HasSubstr("o is written, and with strides ("));
  }
  for (const auto& [tokens, heads] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {kHuge, kHuge}, {kDim, kHuge}, {kHuge / 64, kDim}}) {
    EXPECT_EQ(status(tokens, heads), LONGCA_INVALID_ARGUMENT) << tokens << ", " << heads;
    EXPECT_THAT(longca_last_error(), HasSubstr(", too large for "));
  }
  auto f = t.forward();
  f.k.token_stride = 0;  // a tensor that is read may repeat
  EXPECT_EQ(longca_forward(plan.get(), &f), LONGCA_OK);
  for (longca_tensor longca_backward_arguments::*const written :
       {&longca_backward_arguments::dq, &longca_backward_arguments::dk,
        &longca_backward_arguments::dv}) {
    auto b = t.backward();
    (b.*written).token_stride = 2;
    EXPECT_EQ(longca_backward(plan.get(), &b), LONGCA_INVALID_ARGUMENT);
    EXPECT_THAT(longca_last_error(), HasSubstr("its rows of 16 elements overlap"));
  }
}

TEST(CapiAttention, NoPlanHasNothing) {
  EXPECT_EQ(longca_plan_kernel(nullptr), nullptr);
  EXPECT_EQ(longca_plan_workspace_bytes(nullptr), 0);
}

TEST(CapiAttention, SentencesBelongToTheirThread) {
  EXPECT_EQ(longca_check_abi(LONGCA_ABI_VERSION), LONGCA_OK);
  EXPECT_EQ(longca_check_abi(LONGCA_ABI_VERSION + 1), LONGCA_UNSUPPORTED);
  const std::string mine = longca_last_error();
  EXPECT_THAT(mine, HasSubstr("binary interface"));
  std::thread([] {
    EXPECT_STREQ(longca_last_error(), "");
    longca_mask* mask = nullptr;
    longca_mask_named("none", 4, nullptr, &mask);
  }).join();
  EXPECT_EQ(longca_last_error(), mine);
}

}  // namespace
}  // namespace longca::testing
