#include "attention/reference/float64_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "attention/reference/faulty_masks.h"
#include "attention/reference/passes.h"
#include "attention/solved.h"

namespace longca {
namespace {

HeadValues values_of(const ReferenceProblem& problem, int head_q) {
  const auto floats = [](const TensorView& tensor, int head) {
    std::vector<float> values;
    for (std::int64_t token = 0; token < tensor.tokens; ++token) {
      const float* row = tensor.row<float>(token, head);
      values.insert(values.end(), row, row + tensor.dim);
    }
    return values;
  };
  const Inputs& in = *problem.inputs;
  const int head_k = head_q / problem.shape.group_size();
  HeadValues head;
  head.q = floats(in.q.view(), head_q);
  head.k = floats(in.k.view(), head_k);
  head.v = floats(in.v.view(), head_k);
  head.dout = floats(in.dout.view(), head_q);
  head.dim = problem.shape.head_dim;
  head.value_dim = problem.shape.value_dim();
  head.scale = static_cast<double>(problem.shape.scale());
  head.softcap = static_cast<double>(problem.shape.softcap);
  if (problem.shape.sink) head.sink = in.sink_logits()[head_q];
  return head;
}

Problem problem_with(bool sink, float softcap, int value_dim, Problem problem) {
  problem.head_dim_v = value_dim;
  problem.sink = sink;
  problem.softcap = softcap;
  return problem;
}

/// A small problem whose rows and keys are computed one by one: mask, sink, softcap, dimension of
/// v.
class Samples : public testing::TestWithParam<std::tuple<const char*, bool, float, int>> {
 protected:
  static constexpr std::int64_t kTokens = 200;
  static constexpr int kDim = 21;
  int value_dim_ = std::get<3>(GetParam());
  Problem shape_ = problem_with(std::get<1>(GetParam()), std::get<2>(GetParam()), value_dim_,
                                test::square_problem(kTokens, 4, 2, kDim, DType::float32));
  Inputs inputs_ = make_inputs(shape_, 3);
  ReferenceProblem problem_{shape_, test::small_mask(std::get<0>(GetParam()), kTokens), &inputs_};

  static void expect_equal(const std::vector<double>& found, const double* expected) {
    for (std::size_t c = 0; c < found.size(); ++c) EXPECT_NEAR(found[c], expected[c], 1e-12);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Masks, Samples,
    testing::Combine(testing::Values("causal", "sliding_window", "causal_document"),
                     testing::Bool(), testing::Values(0.0F, 1.5F), testing::Values(21, 10)));

TEST_P(Samples, OfRowsAreThoseOfTheTilePasses) {
  TilePasses<double> passes(problem_);
  std::vector<double> o(kTile * kDim), dq(o.size());
  for (const int head : {0, 3}) {
    const HeadValues values = values_of(problem_, head);
    for (const std::int64_t tile : {0, 3}) {
      RowStatistics<double> rows;
      passes.forward(head, tile, o.data(), rows);
      passes.query_gradient(head, tile, rows, dq.data());
      for (const std::int64_t i : {0, 5, 7}) {
        const std::int64_t row = tile * kTile + i;
        const ExactRow exact = exact_row(values, row, problem_.mask.key_intervals(0, row));
        EXPECT_NEAR(exact.lse, rows.lse[i], 1e-12);
        EXPECT_NEAR(exact.delta, rows.delta[i], 1e-12);
        expect_equal(exact.o, o.data() + i * value_dim_);
        expect_equal(exact.dq, dq.data() + i * kDim);
      }
    }
  }
}

TEST_P(Samples, OfKeysAreThoseOfTheTilePasses) {
  TilePasses<double> passes(problem_);
  std::vector<double> dk(kTile * kDim), dv(dk.size()), o(dk.size());
  const auto rows_of = [&](std::int64_t head, std::int64_t tile) {
    RowStatistics<double> rows;
    TilePasses<double>(problem_).forward(head, tile, o.data(), rows);
    return rows;
  };
  const auto magnitudes = passes.key_gradients(1, 2, rows_of, dk.data(), dv.data());
  double dk_squared = 0;
  double dv_squared = 0;
  for (std::int64_t i = 0; i < kTile; ++i) {
    ExactKey sum;
    for (const int head : {2, 3}) {
      const auto statistic = [&](std::int64_t row) { return rows_of(head, row / kTile); };
      const RowLookup lookup{[&](std::int64_t row) { return statistic(row).lse[row % kTile]; },
                             [&](std::int64_t row) { return statistic(row).delta[row % kTile]; }};
      const std::int64_t key = 2 * kTile + i;
      if (i % 16 != 0 && i != 63) continue;  // the rest only for the magnitudes' sake: too slow
      add(exact_key(values_of(problem_, head), key, problem_.mask.query_intervals(0, key), lookup),
          sum);
    }
    if (sum.dk.empty()) continue;
    expect_equal(sum.dk, dk.data() + i * kDim);
    expect_equal(sum.dv, dv.data() + i * value_dim_);
    dk_squared += sum.dk_magnitude * sum.dk_magnitude;
    dv_squared += sum.dv_magnitude * sum.dv_magnitude;
  }
  EXPECT_LT(std::sqrt(dk_squared), magnitudes.dk.magnitude());
  EXPECT_GT(std::sqrt(dk_squared), 0);
  EXPECT_LT(std::sqrt(dv_squared), magnitudes.dv.magnitude());
}

TEST(SamplesOfNothing, AreNothing) {
  HeadValues head{{1, 2}, {3, 4}, {5, 6}, {7, 8}, 2, 2, 1, 0, {}};
  const ExactRow row = exact_row(head, 0, {});
  EXPECT_EQ(row.lse, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(row.o, std::vector<double>({0, 0}));
  EXPECT_EQ(row.dq, std::vector<double>({0, 0}));
  head.sink = 3;
  EXPECT_EQ(exact_row(head, 0, {}).lse, 3);
  EXPECT_EQ(exact_row(head, 0, {}).o, std::vector<double>({0, 0}));
  head.sink = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(exact_row(head, 0, {}).lse, -std::numeric_limits<double>::infinity());
  const ExactKey key = exact_key(head, 0, {}, {});
  EXPECT_EQ(key.dk, std::vector<double>({0, 0}));
}

}  // namespace
}  // namespace longca
