// Every fault that issue and practice know must be called wrong, under the name of the output that
// shows it, when every element is compared. drawn_faults_test.cpp: when only a part is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <tuple>

#include "attention/reference/faulty_masks.h"
#include "attention/solved.h"
#include "mask/generators.h"

namespace longca {
namespace {

using test::Outputs;
using test::solve;
using test::square_problem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kTokens = 200;

/// A problem of one dtype with its reference; tests spoil what a right kernel returns.
class PlantedFault : public testing::TestWithParam<DType> {
 protected:
  static Problem problem(std::int64_t tokens = kTokens) {
    return square_problem(tokens, 4, 2, 32, GetParam());
  }

  /// What a kernel that takes `wrong` for the mask returns must be called wrong under `mask`.
  void expect_mask_fault(const Mask& mask, const Mask& wrong) const {
    const Problem p = problem(mask.q_tokens());
    const Inputs inputs = make_inputs(p, 1);
    const Reference reference(p, mask, inputs, {1000, 1}, 1);
    const Outputs outputs = solve(p, wrong, inputs);
    const Verdict forward = check_forward(reference, outputs);
    EXPECT_FALSE(forward.ok);
    EXPECT_THAT(forward.reason, StartsWith("lse "));
    // The backward pass alone, after a right forward pass.
    Outputs mixed = solve(p, mask, inputs);
    EXPECT_TRUE(check_forward(reference, mixed).ok);
    Problem backward = p;
    backward.backward = true;
    make_naive_cpu()->plan(backward, wrong)->backward(mixed.backward_args(inputs));
    EXPECT_FALSE(check_backward(reference, mixed, inputs).ok);
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, PlantedFault,
                         testing::Values(DType::float32, DType::bfloat16, DType::float16),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

TEST_P(PlantedFault, OneTileOfOneHeadWronglyMasked) {
  for (const char* name : {"full", "causal", "sliding_window", "document"}) {
    SCOPED_TRACE(name);
    const Mask mask = test::small_mask(name, kTokens);
    const Mask wrong = test::without_tile(mask, 4, 2, 1, name == std::string("document") ? 1 : 0);
    ASSERT_LT(wrong.area(2), mask.area(0));
    ASSERT_EQ(wrong.area(1), mask.area(0));
    expect_mask_fault(mask, wrong);
  }
}

TEST_P(PlantedFault, TheHeadWithTheWrongTileIsNamed) {
  const Problem p = problem();
  const Inputs inputs = make_inputs(p, 1);
  const Mask mask = test::small_mask("full", kTokens);
  const Reference reference(p, mask, inputs, {1000, 1}, 1);
  const Outputs outputs = solve(p, test::without_tile(mask, 4, 2, 1, 0), inputs);
  EXPECT_THAT(check_forward(reference, outputs).reason, HasSubstr("head 2, row"));
  const ConstTensorView o = outputs.o.view();
  EXPECT_THAT(reference.check_forward(o, nullptr).reason,
              StartsWith("o of head 2, rows 64 to 127"));
}

TEST_P(PlantedFault, WindowOffByOne) {
  for (const char* name : {"sliding_window", "sliding_window_causal", "global_sliding_window"}) {
    SCOPED_TRACE(name);
    for (const int by : {-1, 1}) {
      expect_mask_fault(test::small_mask(name, kTokens),
                        test::small_mask(name, kTokens, test::kSmallWindow + by));
    }
  }
}

TEST_P(PlantedFault, DiagonalOffByOne) {
  const Mask causal = test::small_mask("causal", kTokens);
  expect_mask_fault(causal, test::shifted_causal(kTokens, -1));
  expect_mask_fault(causal, test::shifted_causal(kTokens, 1));
}

TEST_P(PlantedFault, OneDocumentBoundaryMovedByOne) {
  for (const MaskSliceType type : {MaskSliceType::full, MaskSliceType::causal}) {
    for (const std::int64_t by : {-1, 1}) {
      expect_mask_fault(test::documents({50, 90, 60}, type),
                        test::documents({50, 90 + by, 60 - by}, type));
    }
  }
}

TEST_P(PlantedFault, LastKeyOfALengthThatNoTileDividesDropped) {
  for (const std::int64_t tokens : {1, 65, 127, 200}) {
    for (const char* name : {"full", "causal"}) {
      const Mask mask = test::small_mask(name, tokens);
      expect_mask_fault(mask, test::without_last_key(mask));
    }
  }
}

TEST_P(PlantedFault, ScaleOffByOnePercent) {
  for (const char* name : {"full", "causal", "sliding_window"}) {
    const Problem p = problem();
    const Inputs inputs = make_inputs(p, 1);
    const Mask mask = test::small_mask(name, kTokens);
    const Reference reference(p, mask, inputs, {1000, 1}, 1);
    Problem wrong = p;
    wrong.softmax_scale = p.scale() * 1.01F;
    const Outputs outputs = solve(wrong, mask, inputs);
    EXPECT_THAT(check_forward(reference, outputs).reason, StartsWith("lse "));
    Outputs mixed = solve(p, mask, inputs);
    make_naive_cpu()->plan(wrong, mask)->backward(mixed.backward_args(inputs));
    EXPECT_THAT(check_backward(reference, mixed, inputs).reason, StartsWith("dq "));
  }
}

/// Faults in one output of an otherwise right result.
class SpoiltOutput : public PlantedFault {
 protected:
  explicit SpoiltOutput(const Problem& p = problem()) : p_(p) {}

  Problem p_;
  Inputs inputs_ = make_inputs(p_, 1);
  Mask mask_ = test::small_mask("causal", kTokens);
  Reference reference_{p_, mask_, inputs_, {1000, 1}, 1};
  Outputs outputs_ = solve(p_, mask_, inputs_);

  std::string forward_reason() const {
    const Verdict verdict = check_forward(reference_, outputs_);
    EXPECT_FALSE(verdict.ok);
    EXPECT_GT(verdict.worst_ratio, 1);
    return verdict.reason;
  }
  std::string backward_reason() const {
    const Verdict verdict = check_backward(reference_, outputs_, inputs_);
    EXPECT_FALSE(verdict.ok);
    EXPECT_GT(verdict.worst_ratio, 1);
    return verdict.reason;
  }
  void set(const HostTensor& tensor, std::int64_t token, std::int64_t head, std::int64_t column,
           float value) const {
    const TensorView& view = tensor.view();
    with_type_of(view.dtype, [&]<typename T>(T) { view.row<T>(token, head)[column] = T(value); });
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, SpoiltOutput,
                         testing::Values(DType::float32, DType::bfloat16, DType::float16),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

TEST_P(SpoiltOutput, NothingSpoiltIsRight) {
  EXPECT_TRUE(check_forward(reference_, outputs_).ok);
  EXPECT_TRUE(check_backward(reference_, outputs_, inputs_).ok);
}

TEST_P(SpoiltOutput, LseInBaseTwo) {
  for (int head = 0; head < 4; ++head) {
    for (std::int64_t row = 0; row < kTokens; ++row) {
      outputs_.lse.view().head(head)[row] *= 1.442695041F;
    }
  }
  EXPECT_THAT(forward_reason(), StartsWith("lse "));
}

TEST_P(SpoiltOutput, AGqaGroupNotSummedInDk) {
  // Every KV head gets the gradient of its last query head alone: the problem with one head each.
  const auto last_of_group = [](const auto& view) {
    auto heads = view;
    heads.data = reinterpret_cast<char*>(heads.data) +
                 heads.head_stride * size_of(view.dtype);  // the second of two
    heads.heads /= 2;
    heads.head_stride *= 2;
    return heads;
  };
  BackwardArgs args = outputs_.backward_args(inputs_);
  args.q = last_of_group(inputs_.q.view());
  args.dout = last_of_group(inputs_.dout.view());
  args.o = last_of_group(outputs_.o.view());
  args.dq = last_of_group(outputs_.dq.view());
  LseView lse = outputs_.lse.view();
  args.lse = LseView{lse.data + lse.head_stride, 2, lse.tokens, 2 * lse.head_stride};
  const Outputs spare(p_);
  args.dv = spare.dv.view();
  Problem single = p_;
  single.heads_q = 2;
  make_naive_cpu()->plan(single, mask_)->backward(args);
  EXPECT_THAT(backward_reason(), StartsWith("dk "));
}

TEST_P(SpoiltOutput, ATileMissingFromDv) {
  const Outputs partial = solve(p_, mask_, inputs_);
  BackwardArgs args = partial.backward_args(inputs_);
  const Outputs spare(p_);
  args.dq = spare.dq.view();
  args.dk = spare.dk.view();
  args.dv = outputs_.dv.view();
  make_naive_cpu()->plan(p_, test::without_tile(mask_, 4, 3, 2, 1))->backward(args);
  EXPECT_THAT(backward_reason(), StartsWith("dv of KV head 1, keys 64 to 127"));
}

TEST_P(SpoiltOutput, OneNaN) {
  const float nan = std::nanf("");
  set(outputs_.o, 70, 1, 5, nan);
  EXPECT_THAT(forward_reason(), StartsWith("o is nan at head 1, row 70, column 5"));
  set(outputs_.dv, 3, 1, 0, nan);
  EXPECT_THAT(backward_reason(), StartsWith("dv is nan at KV head 1, key 3, column 0"));
  set(outputs_.dk, 199, 0, 31, nan);
  EXPECT_THAT(backward_reason(), StartsWith("dk is nan at KV head 0, key 199"));
  set(outputs_.dq, 0, 3, 0, nan);
  EXPECT_THAT(backward_reason(), StartsWith("dq is nan at head 3, row 0"));
  outputs_.lse.view().head(2)[9] = nan;
  EXPECT_THAT(forward_reason(), StartsWith("lse is nan instead of"));
}

TEST_P(SpoiltOutput, OneElementFarOff) {
  set(outputs_.o, 150, 0, 7, 0.9F);
  EXPECT_THAT(forward_reason(), StartsWith("o "));
  set(outputs_.dk, 20, 1, 7, 1e20F);
  EXPECT_THAT(backward_reason(), StartsWith("dk "));
}

TEST_P(SpoiltOutput, OutputsNeverWritten) {
  poison(outputs_.dv.view());
  EXPECT_THAT(backward_reason(), StartsWith("dv is nan"));
  poison(outputs_.dk.view());
  EXPECT_THAT(backward_reason(), StartsWith("dk is nan"));
  poison(outputs_.dq.view());
  EXPECT_THAT(backward_reason(), StartsWith("dq is nan"));
  poison(outputs_.o.view());
  EXPECT_THAT(forward_reason(), StartsWith("o is nan"));
  poison(outputs_.lse.view());
  EXPECT_THAT(forward_reason(), StartsWith("lse is nan"));
}

TEST_P(SpoiltOutput, OneRowNeverWritten) {
  TensorView last = outputs_.dk.view();
  last.data = last.row<char>(0, 0) + (kTokens - 1) * last.token_stride * size_of(last.dtype);
  last.tokens = 1;
  last.heads = 1;
  poison(last);
  EXPECT_THAT(backward_reason(), StartsWith("dk is nan at KV head 0, key 199"));
}

TEST_P(SpoiltOutput, ResultsOfThePreviousCaseReturned) {
  const Inputs previous = make_inputs(p_, 2);
  const Outputs stale = solve(p_, mask_, previous);
  EXPECT_THAT(check_forward(reference_, stale).reason, StartsWith("lse "));
  EXPECT_THAT(reference_.check_forward(stale.o.view(), nullptr).reason, StartsWith("o "));
  EXPECT_THAT(check_backward(reference_, stale, inputs_).reason, StartsWith("dq "));
  for (const auto& [name, tensor] : {std::pair{"dk ", &stale.dk}, std::pair{"dv ", &stale.dv}}) {
    BackwardArgs args = outputs_.backward_args(inputs_);
    (name == std::string("dk ") ? args.dk : args.dv) = tensor->view();
    EXPECT_THAT(reference_.check_backward(args).reason, StartsWith(name));
  }
}

TEST_P(SpoiltOutput, RowsWithoutKeysMustBeExactlyNothing) {
  const Mask mask =
      Mask::from_slices(kTokens, kTokens, {{10, kTokens, 0, 150, MaskSliceType::full}});
  const Reference reference(p_, mask, inputs_, {1000, 1}, 1);
  outputs_ = solve(p_, mask, inputs_);
  EXPECT_TRUE(check_forward(reference, outputs_).ok);
  EXPECT_TRUE(check_backward(reference, outputs_, inputs_).ok);
  outputs_.lse.view().head(1)[4] = -1e30F;
  EXPECT_THAT(check_forward(reference, outputs_).reason,
              StartsWith("lse is -1e+30 instead of -inf"));
  outputs_.lse.view().head(1)[4] = -std::numeric_limits<float>::infinity();
  const float tiny = p_.dtype == DType::float16 ? 0x1p-24F : 1e-30F;
  set(outputs_.o, 9, 3, 2, tiny);
  EXPECT_THAT(check_forward(reference, outputs_).reason,
              testing::AllOf(StartsWith("o is "), HasSubstr("at head 3, row 9, column 2"),
                             HasSubstr("exactly 0")));
  set(outputs_.dk, 160, 0, 0, tiny);
  EXPECT_THAT(check_backward(reference, outputs_, inputs_).reason,
              testing::AllOf(StartsWith("dk is"), HasSubstr("key 160"), HasSubstr("exactly 0")));
}

/// V has a dimension of its own.
class ShorterV : public SpoiltOutput {
 protected:
  static constexpr int kValueDim = 24;

  ShorterV() : SpoiltOutput(shorter()) {}

 private:
  static Problem shorter() {
    Problem p = problem();
    p.head_dim_v = kValueDim;
    return p;
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, ShorterV,
                         testing::Values(DType::float32, DType::bfloat16, DType::float16),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

/// V contiguous, in a buffer that has room for the dimension of K, as a kernel reads it that takes
/// the rows of both to be equally long.
TEST_P(ShorterV, ReadWithTheStrideOfK) {
  const HostTensor room(p_.dtype, kTokens, p_.heads_k, p_.head_dim);
  std::memcpy(room.view().data, inputs_.v.view().data, static_cast<std::size_t>(inputs_.v.bytes()));
  TensorView wrong = room.view();
  wrong.dim = kValueDim;  // with the strides of k

  EXPECT_TRUE(check_forward(reference_, outputs_).ok);
  EXPECT_TRUE(check_backward(reference_, outputs_, inputs_).ok);
  const auto plan = make_naive_cpu()->plan(p_, mask_);
  ForwardArgs forward = outputs_.forward_args(inputs_);
  forward.v = wrong;
  plan->forward(forward);
  EXPECT_THAT(forward_reason(), StartsWith("o "));

  outputs_ = solve(p_, mask_, inputs_);
  BackwardArgs backward = outputs_.backward_args(inputs_);
  backward.v = wrong;
  plan->backward(backward);
  EXPECT_THAT(backward_reason(), StartsWith("dq "));
}

/// The last column of dv is that of the column before.
TEST_P(ShorterV, TheLastColumnOfDv) {
  const TensorView& dv = outputs_.dv.view();
  const auto bytes = size_of(p_.dtype);
  for (std::int64_t key = 0; key < kTokens; ++key) {
    char* last = dv.row<char>(0, 0) + (key * dv.token_stride + kValueDim - 1) * bytes;
    std::memcpy(last, last - bytes, static_cast<std::size_t>(bytes));
  }
  EXPECT_THAT(backward_reason(), testing::AllOf(StartsWith("dv "), HasSubstr("KV head 0")));
}

}  // namespace
}  // namespace longca
