#include "attention/reference/passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "attention/solved.h"
#include "mask/generators.h"

namespace longca {
namespace {

using test::square_problem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// All results of the float64 passes, [head][token][dim].
struct Results {
  std::vector<std::vector<double>> o, lse, dq, dk, dv;
};

Results run(const ReferenceProblem& problem) {
  const Problem& p = problem.shape;
  const std::int64_t size = kTile * p.head_dim;
  TilePasses<double> passes(problem);
  Results results;
  std::vector<std::vector<RowStatistics<double>>> rows(p.heads_q);
  for (std::int64_t head = 0; head < p.heads_q; ++head) {
    std::vector<double> o, dq, lse;
    for (std::int64_t tile = 0; tile < tile_count(p.tokens_q); ++tile) {
      std::vector<double> values(size);
      passes.forward(head, tile, values.data(), rows[head].emplace_back());
      o.insert(o.end(), values.begin(), values.end());
      lse.insert(lse.end(), rows[head].back().lse.begin(), rows[head].back().lse.end());
      passes.query_gradient(head, tile, rows[head].back(), values.data());
      dq.insert(dq.end(), values.begin(), values.end());
    }
    results.o.push_back(o);
    results.lse.push_back(lse);
    results.dq.push_back(dq);
  }
  for (std::int64_t head = 0; head < p.heads_k; ++head) {
    std::vector<double> dk, dv;
    for (std::int64_t tile = 0; tile < tile_count(p.tokens_k); ++tile) {
      std::vector<double> a(size), b(size);
      passes.key_gradients(
          head, tile, [&](std::int64_t h, std::int64_t t) { return rows[h][t]; }, a.data(),
          b.data());
      dk.insert(dk.end(), a.begin(), a.end());
      dv.insert(dv.end(), b.begin(), b.end());
    }
    results.dk.push_back(dk);
    results.dv.push_back(dv);
  }
  return results;
}

/// Σ dO · O, whose gradients dQ, dK and dV are.
double loss(const ReferenceProblem& problem) {
  const Problem& p = problem.shape;
  TilePasses<double> passes(problem);
  std::vector<double> o(kTile * p.head_dim);
  double sum = 0;
  for (std::int64_t head = 0; head < p.heads_q; ++head) {
    for (std::int64_t tile = 0; tile < tile_count(p.tokens_q); ++tile) {
      RowStatistics<double> rows;
      passes.forward(head, tile, o.data(), rows);
      for (const double delta : rows.delta) sum += delta;
    }
  }
  return sum;
}

/// Derivative of the loss by one input element, by central differences at two steps.
double derivative(const ReferenceProblem& problem, float& element) {
  const float value = element;
  const auto central = [&](float step) {
    element = value + step;
    const double above = element;
    const double loss_above = loss(problem);
    element = value - step;
    const double below = element;
    const double loss_below = loss(problem);
    element = value;
    return (loss_above - loss_below) / (above - below);
  };
  const double wide = central(0x1p-7F);
  const double narrow = central(0x1p-8F);
  return narrow + (narrow - wide) / 3;  // Richardson: the error is of fourth order
}

struct GradientCase {
  const char* mask;
  std::int64_t tokens;
  int heads_q, heads_k;
};

class ReferenceGradients : public testing::TestWithParam<GradientCase> {};

TEST_P(ReferenceGradients, AreTheDerivativesOfTheLoss) {
  const GradientCase& c = GetParam();
  const Problem p = square_problem(c.tokens, c.heads_q, c.heads_k, 10, DType::float32);
  const Inputs inputs = make_inputs(p, 3);
  MaskSpec spec;
  spec.name = c.mask;
  spec.tokens = c.tokens;
  spec.window = 9;
  spec.block = 24;
  spec.heads_q = c.heads_q;
  spec.heads_k = c.heads_k;
  const ReferenceProblem problem{p, generate_mask(spec).mask, &inputs};
  const Results results = run(problem);
  std::mt19937 random(5);
  const auto check = [&](const TensorView& tensor,
                         const std::vector<std::vector<double>>& gradient) {
    for (int i = 0; i < 8; ++i) {
      const auto token = static_cast<std::int64_t>(random() % c.tokens);
      const auto head = static_cast<std::int64_t>(random() % tensor.heads);
      const auto column = static_cast<std::int64_t>(random() % 10);
      EXPECT_NEAR(gradient[head][token * 10 + column],
                  derivative(problem, tensor.row<float>(token, head)[column]), 1e-7)
          << token << ' ' << head << ' ' << column;
    }
  };
  check(inputs.q.view(), results.dq);
  check(inputs.k.view(), results.dk);
  check(inputs.v.view(), results.dv);
}

INSTANTIATE_TEST_SUITE_P(Masks, ReferenceGradients,
                         testing::Values(GradientCase{"full", 20, 1, 1},
                                         GradientCase{"causal", 130, 2, 1},
                                         GradientCase{"sliding_window", 100, 2, 2},
                                         GradientCase{"block_sparse", 150, 4, 2}),
                         [](const auto& instance) { return instance.param.mask; });

/// Softmax attention as the formula reads, for one query head.
void expect_textbook_forward(const ReferenceProblem& problem, std::int64_t head,
                             const std::vector<double>& o, const std::vector<double>& lse) {
  const Problem& p = problem.shape;
  const std::int64_t head_k = head / p.group_size();
  for (std::int64_t q = 0; q < p.tokens_q; ++q) {
    std::vector<double> sum(p.head_dim);
    double weight = 0;
    for (std::int64_t k = 0; k < p.tokens_k; ++k) {
      if (!problem.mask.allows(problem.mask_head(head), q, k)) continue;
      double score = 0;
      for (int c = 0; c < p.head_dim; ++c) {
        score += static_cast<double>(problem.inputs->q.view().row<float>(q, head)[c]) *
                 static_cast<double>(problem.inputs->k.view().row<float>(k, head_k)[c]);
      }
      const double term = std::exp(score * static_cast<double>(p.scale()));
      weight += term;
      for (int c = 0; c < p.head_dim; ++c) {
        sum[c] += term * static_cast<double>(problem.inputs->v.view().row<float>(k, head_k)[c]);
      }
    }
    for (int c = 0; c < p.head_dim; ++c) {
      const double expected = weight > 0 ? sum[c] / weight : 0;
      ASSERT_NEAR(o[q * p.head_dim + c], expected, 1e-13) << q;
    }
    if (weight > 0) {
      ASSERT_NEAR(lse[q], std::log(weight), 1e-13);
    } else {
      ASSERT_EQ(lse[q], -kInfinity);
    }
  }
}

TEST(ReferenceForward, IsTheTextbookFormulaOnEveryMask) {
  for (const MaskTraits& traits : mask_table()) {
    SCOPED_TRACE(traits.name);
    MaskSpec spec;
    spec.name = traits.name;
    spec.tokens = 150;
    spec.window = 20;
    spec.block_tokens = 30;
    spec.block = 25;
    spec.heads_q = 4;
    spec.heads_k = 2;
    const Problem p = square_problem(150, 4, 2, 12, DType::float32);
    const Inputs inputs = make_inputs(p, 8);
    const ReferenceProblem problem{p, generate_mask(spec).mask, &inputs};
    const Results results = run(problem);
    for (std::int64_t head = 0; head < 4; ++head) {
      expect_textbook_forward(problem, head, results.o[head], results.lse[head]);
    }
  }
}

TEST(ReferenceForward, UniformScoresGiveTheMeanAndTheLogarithmOfTheCount) {
  Problem p = square_problem(90, 1, 1, 4, DType::float32);
  const Inputs inputs = make_inputs(p, 8);
  std::fill_n(inputs.q.view().row<float>(0, 0), 90 * 4, 0.0F);
  const Mask mask = Mask::from_slices(90, 90, {{0, 90, 0, 90, MaskSliceType::causal}});
  const Results results = run({p, mask, &inputs});
  double sum = 0;
  for (std::int64_t q = 0; q < 90; ++q) {
    sum += static_cast<double>(inputs.v.view().row<float>(q, 0)[1]);
    EXPECT_NEAR(results.lse[0][q], std::log(static_cast<double>(q + 1)), 1e-14);
    EXPECT_NEAR(results.o[0][q * 4 + 1], sum / static_cast<double>(q + 1), 1e-14);
  }
}

TEST(ReferencePasses, ASingleKeyIsCopied) {
  Problem p = square_problem(1, 2, 1, 4, DType::float32);
  const Inputs inputs = make_inputs(p, 8);
  const Mask mask = Mask::from_slices(1, 1, {{0, 1, 0, 1, MaskSliceType::full}});
  const Results results = run({p, mask, &inputs});
  for (int c = 0; c < 4; ++c) {
    EXPECT_EQ(results.o[1][c], static_cast<double>(inputs.v.view().row<float>(0, 0)[c]));
    EXPECT_NEAR(results.dq[1][c], 0, 1e-15);
    EXPECT_NEAR(results.dk[0][c], 0, 1e-15);
    EXPECT_NEAR(results.dv[0][c],
                static_cast<double>(inputs.dout.view().row<float>(0, 0)[c]) +
                    static_cast<double>(inputs.dout.view().row<float>(0, 1)[c]),
                1e-15);
  }
}

TEST(ReferencePasses, LargeScoresDoNotOverflow) {
  Problem p = square_problem(70, 1, 1, 4, DType::float32);
  p.softmax_scale = 500;
  const Inputs inputs = make_inputs(p, 8);
  const Mask mask = Mask::from_slices(70, 70, {{0, 70, 0, 70, MaskSliceType::full}});
  const Results results = run({p, mask, &inputs});
  for (std::int64_t q = 0; q < 70; ++q) {
    EXPECT_TRUE(std::isfinite(results.lse[0][q]));
    EXPECT_TRUE(std::isfinite(results.dk[0][q * 4]));
  }
}

TEST(SamePrecision, RoundsItsResultsToTheDtypeAndStaysNearTheReference) {
  const Problem p = square_problem(100, 1, 1, 32, DType::bfloat16);
  const Inputs inputs = make_inputs(p, 8);
  const Mask mask = Mask::from_slices(100, 100, {{0, 100, 0, 100, MaskSliceType::full}});
  const ReferenceProblem problem{p, mask, &inputs};
  std::vector<double> exact(kTile * 32);
  std::vector<float> same(kTile * 32);
  RowStatistics<double> exact_rows;
  RowStatistics<float> same_rows;
  TilePasses<double>(problem).forward(0, 0, exact.data(), exact_rows);
  TilePasses<float>(problem).forward(0, 0, same.data(), same_rows);
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < same.size(); ++i) {
    EXPECT_EQ(same[i], static_cast<float>(BFloat16(same[i])));
    error += std::pow(static_cast<double>(same[i]) - exact[i], 2);
    norm += exact[i] * exact[i];
  }
  EXPECT_LT(std::sqrt(error / norm), 4e-3);
  EXPECT_GT(std::sqrt(error / norm), 1e-3);  // of two roundings to 8 bits, not of float32
}

}  // namespace
}  // namespace longca
