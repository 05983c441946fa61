// When the budget allows a part only, faults that touch what is drawn are still caught, right
// results still pass, and the fraction is what was compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "attention/reference/faulty_masks.h"
#include "attention/reference/selection.h"
#include "attention/solved.h"

namespace longca {
namespace {

using test::Outputs;
using test::solve;
using test::square_problem;
using testing::StartsWith;

constexpr std::int64_t kTokens = 500;
using Mode = Selection::Mode;

class DrawnFault : public testing::TestWithParam<std::tuple<Mode, DType>> {
 protected:
  Problem problem_ = square_problem(kTokens, 4, 2, 32, std::get<1>(GetParam()));
  Inputs inputs_ = make_inputs(problem_, 1);

  /// A budget that leads to the mode wanted, whatever the mask.
  VerifyBudget budget_for(const Mask& mask) const {
    for (double seconds = 100; seconds > 1e-6; seconds *= 0.7) {
      const VerifyBudget budget{seconds, 1};
      if (select_tiles(problem_, mask, budget, 1).mode == std::get<0>(GetParam())) return budget;
    }
    ADD_FAILURE() << "no budget leads there";
    return {};
  }

  /// Both passes of a kernel that takes the wrong mask or scale, judged by parts of the right
  /// problem.
  void expect_caught(const Mask& mask, const Problem& wrong_problem, const Mask& wrong_mask) const {
    const Reference reference(problem_, mask, inputs_, budget_for(mask), 1);
    EXPECT_LT(reference.fraction(), 1);
    const Outputs wrong = solve(wrong_problem, wrong_mask, inputs_);
    EXPECT_THAT(check_forward(reference, wrong).reason, StartsWith("lse "));
    const Outputs mixed = solve(problem_, mask, inputs_);
    const Verdict right = check_forward(reference, mixed);
    EXPECT_TRUE(right.ok) << right.reason;
    make_naive_cpu()->plan(wrong_problem, wrong_mask)->backward(mixed.backward_args(inputs_));
    EXPECT_FALSE(check_backward(reference, mixed, inputs_).ok);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Modes, DrawnFault,
    testing::Combine(testing::Values(Mode::heads, Mode::tiles),
                     testing::Values(DType::float32, DType::bfloat16, DType::float16)),
    [](const auto& instance) {
      return std::string(std::get<0>(instance.param) == Mode::heads ? "heads_" : "tiles_") +
             std::string(to_string(std::get<1>(instance.param)));
    });

TEST_P(DrawnFault, RightResultsPassAndTheFractionIsWhatWasCompared) {
  for (const char* name : {"full", "causal", "sliding_window_causal", "document"}) {
    SCOPED_TRACE(name);
    const Mask mask = test::small_mask(name, kTokens);
    const VerifyBudget budget = budget_for(mask);
    const Reference reference(problem_, mask, inputs_, budget, 1);
    const Outputs outputs = solve(problem_, mask, inputs_);
    const Verdict forward = check_forward(reference, outputs);
    const Verdict backward = check_backward(reference, outputs, inputs_);
    EXPECT_TRUE(forward.ok) << forward.reason;
    EXPECT_TRUE(backward.ok) << backward.reason;
    EXPECT_LE(std::max(forward.worst_ratio, backward.worst_ratio), 0.6);
    EXPECT_TRUE(forward.error_o && forward.error_lse);
    EXPECT_TRUE(backward.error_dq && backward.error_dk && backward.error_dv);

    const Selection selection = select_tiles(problem_, mask, budget, 1);
    double rows = 0;
    for (const auto& item : selection.queries) {
      rows += static_cast<double>(std::min(kTile, kTokens - item.tile * kTile));
    }
    double keys = 0;
    for (const auto& item : selection.keys) {
      keys += static_cast<double>(std::min(kTile, kTokens - item.tile * kTile));
    }
    EXPECT_DOUBLE_EQ(forward.fraction, rows / (4 * kTokens));
    EXPECT_DOUBLE_EQ(backward.fraction, (rows + 2 * keys) / (8 * kTokens));
    EXPECT_LT(forward.fraction, 1);
  }
}

void poison_head(TensorView tensor, std::int64_t head) {
  tensor.data = static_cast<char*>(tensor.data) + head * tensor.head_stride * size_of(tensor.dtype);
  tensor.heads = 1;
  poison(tensor);
}

void poison_query_head(const Outputs& outputs, std::int64_t head) {
  poison_head(outputs.o.view(), head);
  poison_head(outputs.dq.view(), head);
  LseView lse = outputs.lse.view();
  lse.data = lse.head(static_cast<int>(head));
  lse.heads = 1;
  poison(lse);
}

bool has(const std::vector<Range>& ranges, std::int64_t head) {
  return std::ranges::any_of(ranges, [&](Range r) { return r.begin <= head && head < r.end; });
}

TEST_P(DrawnFault, OnlyTheHeadsThatAreCheckedMatter) {
  const Mask mask = test::small_mask("causal", kTokens);
  for (const VerifyBudget budget : {budget_for(mask), VerifyBudget{1e-9, 1}}) {
    const Reference reference(problem_, mask, inputs_, budget, 1);
    const CheckedHeads checked = reference.checked_heads();
    const Outputs outputs = solve(problem_, mask, inputs_);
    for (int head = 0; head < problem_.heads_q; ++head) {
      if (!has(checked.q, head)) poison_query_head(outputs, head);
    }
    for (int head = 0; head < problem_.heads_k; ++head) {
      if (has(checked.k, head)) continue;
      poison_head(outputs.dk.view(), head);
      poison_head(outputs.dv.view(), head);
    }
    EXPECT_TRUE(check_forward(reference, outputs).ok);
    EXPECT_TRUE(check_backward(reference, outputs, inputs_).ok);
    EXPECT_FALSE(budget.seconds < 1e-6 && has(checked.k, 0) && has(checked.k, 1));
    poison_query_head(outputs, checked.q.front().begin);
    poison_head(outputs.dk.view(), checked.k.front().begin);
    EXPECT_FALSE(check_forward(reference, outputs).ok &&
                 check_backward(reference, outputs, inputs_).ok);
  }
}

TEST_P(DrawnFault, WindowOffByOne) {
  const Mask mask = test::small_mask("sliding_window", kTokens);
  expect_caught(mask, problem_, test::small_mask("sliding_window", kTokens, 38));
}

TEST_P(DrawnFault, DiagonalOffByOne) {
  expect_caught(test::small_mask("causal", kTokens), problem_, test::shifted_causal(kTokens, 1));
}

TEST_P(DrawnFault, LastKeyDropped) {
  for (const char* name : {"full", "causal"}) {
    const Mask mask = test::small_mask(name, kTokens);
    expect_caught(mask, problem_, test::without_last_key(mask));
  }
}

TEST_P(DrawnFault, ScaleOffByOnePercent) {
  Problem wrong = problem_;
  wrong.softmax_scale = problem_.scale() * 1.01F;
  const Mask mask = test::small_mask("causal", kTokens);
  expect_caught(mask, wrong, mask);
}

TEST_P(DrawnFault, OutputsNeverWrittenOrOfThePreviousCase) {
  const Mask mask = test::small_mask("causal", kTokens);
  const Reference reference(problem_, mask, inputs_, budget_for(mask), 1);
  const Outputs right = solve(problem_, mask, inputs_);
  const Outputs previous = solve(problem_, mask, make_inputs(problem_, 2));
  const Outputs unwritten(problem_);
  for (const Outputs* stale : {&previous, &unwritten}) {
    EXPECT_THAT(check_forward(reference, *stale).reason, StartsWith("lse "));
    EXPECT_THAT(reference.check_forward(stale->o.view(), nullptr).reason, StartsWith("o "));
    BackwardArgs args = right.backward_args(inputs_);
    args.dq = stale->dq.view();
    EXPECT_THAT(reference.check_backward(args).reason, StartsWith("dq "));
    args = right.backward_args(inputs_);
    args.dk = stale->dk.view();
    EXPECT_THAT(reference.check_backward(args).reason, StartsWith("dk "));
    args = right.backward_args(inputs_);
    args.dv = stale->dv.view();
    EXPECT_THAT(reference.check_backward(args).reason, StartsWith("dv "));
  }
}

TEST(DrawnTiles, GradientsWithoutALseAreRefused) {
  const Problem problem = square_problem(kTokens, 4, 2, 32, DType::float32);
  const Inputs inputs = make_inputs(problem, 1);
  const Mask mask = test::small_mask("causal", kTokens);
  const Reference reference(problem, mask, inputs, {1e-6, 1}, 1);
  EXPECT_EQ(reference.why_gradients_need_lse(),
            "a verify_budget_s of 1e-06 has room for tiles of a head only, whose dk and dv are "
            "computed from the kernel's LSE");
  BackwardArgs args = solve(problem, mask, inputs).backward_args(inputs);
  args.lse.data = nullptr;
  EXPECT_THROW(reference.check_backward(args), InternalError);
  EXPECT_EQ(Reference(problem, mask, inputs, {10, 1}, 1).why_gradients_need_lse(), "");
}

}  // namespace
}  // namespace longca
