// Blocked attention against attention by its definition, over random masks, shapes, dtypes,
// strides, instruction sets and thread counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "attention/cpu/blocked_plan.h"
#include "attention/cpu/dense_attention.h"
#include "attention/cpu/kernels.h"
#include "attention/cpu/random_problem.h"
#include "attention/reference/verify.h"

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
        if (from.dtype == DType::float32) {
          std::copy_n(from.row<float>(t, h), from.dim, view_.row<float>(t, h));
        } else {
          std::copy_n(from.row<BFloat16>(t, h), from.dim, view_.row<BFloat16>(t, h));
        }
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

  Tensors(const Problem& p, const Inputs& inputs, bool gaps)
      : q(inputs.q.view(), gaps),
        k(inputs.k.view(), gaps),
        v(inputs.v.view(), gaps),
        dout(inputs.dout.view(), gaps),
        o(out_type(p), p.tokens_q, p.heads_q, p.head_dim, gaps),
        dq(out_type(p), p.tokens_q, p.heads_q, p.head_dim, gaps),
        dk(out_type(p), p.tokens_k, p.heads_k, p.head_dim, gaps),
        dv(out_type(p), p.tokens_k, p.heads_k, p.head_dim, gaps),
        lse(p.heads_q, p.tokens_q) {
    poison(lse.view());
  }
  static DType out_type(const Problem& p) { return p.accumulate ? DType::float32 : p.dtype; }

  ForwardArgs forward() const {
    return {.q = q.view(), .k = k.view(), .v = v.view(), .o = o.view(), .lse = lse.view()};
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
            .dv = dv.view()};
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
}

void check_random_problems(DType dtype, int count, const cpu::BlockedOptions& options) {
  for (int i = 0; i < count; ++i) {
    const auto seed = static_cast<std::uint32_t>(i);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    check_problem(dtype, seed, options);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(BlockedAttention, AgreesWithTheDefinitionInFloat32) {
  check_random_problems(DType::float32, 150, {});
}

TEST(BlockedAttention, AgreesWithTheDefinitionInBFloat16) {
  check_random_problems(DType::bfloat16, 150, {});
}

TEST(BlockedAttention, AgreesWithTheDefinitionInBFloat16WithoutDotProducts) {
  check_random_problems(DType::bfloat16, 60, {.bf16_products = false});
}

TEST(BlockedAttention, TilesMayFollowBlocks) {
  check_random_problems(DType::float32, 60, {.cut = cpu::TileCut::blocks});
  check_random_problems(DType::bfloat16, 60, {.cut = cpu::TileCut::blocks});
}

}  // namespace
}  // namespace longca::test
