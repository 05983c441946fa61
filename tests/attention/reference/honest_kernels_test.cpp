// No false alarms: right results pass, with room, whatever order and rounding an honest kernel has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "attention/api/registry.h"
#include "attention/solved.h"
#include "mask/generators.h"

namespace longca {
namespace {

using test::Outputs;
using test::solve;
using test::square_problem;

constexpr double kRoom = 0.5;  // of every bound: a margin of two

Mask make_mask(const std::string& name, const Problem& problem) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = problem.tokens_q;
  spec.window = 37;
  spec.block_tokens = 96;
  spec.block = 64;
  spec.heads_q = problem.heads_q;
  spec.heads_k = problem.heads_k;
  return generate_mask(spec).mask;
}

void expect_room(const Verdict& verdict, const char* pass) {
  EXPECT_TRUE(verdict.ok) << pass << ": " << verdict.reason;
  EXPECT_LE(verdict.worst_ratio, kRoom) << pass;
  EXPECT_EQ(verdict.fraction, 1);
}

void expect_all_kernels_pass(Problem problem, const std::string& mask_name, std::uint64_t seed,
                             InputStyle style = InputStyle::normal) {
  const Mask mask = make_mask(mask_name, problem);
  const Inputs inputs = make_inputs(problem, seed, style);
  const Reference reference(problem, mask, inputs, {1000, 1}, 1);
  for (const auto& kernel : KernelRegistry::global().kernels()) {
    if (!kernel->supports(problem, mask).ok()) continue;
    SCOPED_TRACE(kernel->capabilities().name + ", " + mask_name + ", " +
                 std::to_string(problem.tokens_q) + " tokens, seed " + std::to_string(seed));
    const Outputs outputs = solve(*kernel, problem, mask, inputs);
    expect_room(check_forward(reference, outputs), "forward");
    expect_room(check_backward(reference, outputs, inputs), "backward");
  }
}

class HonestKernels : public testing::TestWithParam<std::tuple<std::string, DType>> {};

TEST_P(HonestKernels, PassAtAwkwardLengths) {
  const auto& [mask, dtype] = GetParam();
  for (const std::int64_t tokens : {1, 2, 63, 64, 65, 127}) {
    expect_all_kernels_pass(square_problem(tokens, 8, 2, 40, dtype), mask, 1);
    expect_all_kernels_pass(square_problem(tokens, 4, 4, 128, dtype), mask, 2);
  }
}

TEST_P(HonestKernels, PassAtAThousandTokens) {
  const auto& [mask, dtype] = GetParam();
  expect_all_kernels_pass(square_problem(1000, 2, 1, 32, dtype), mask, 3);
}

std::vector<std::string> all_masks() {
  std::vector<std::string> names;
  for (const MaskTraits& traits : mask_table()) names.push_back(traits.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Masks, HonestKernels,
                         testing::Combine(testing::ValuesIn(all_masks()),
                                          testing::Values(DType::float32, DType::bfloat16,
                                                          DType::float16)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  std::string(to_string(std::get<1>(instance.param)));
                         });

// Few elements and much luck: the emulation's rounding errors may be small by chance.
TEST(HonestKernelsOfFewElements, PassForManySeeds) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      expect_all_kernels_pass(square_problem(3, 2, 1, 4, dtype), "causal", seed);
      expect_all_kernels_pass(square_problem(9, 2, 2, 1, dtype), "full", seed);
    }
  }
}

TEST(HonestKernelsOfOtherScales, PassWithSharpAndWithFlatScores) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const float scale : {1e-3F, 0.5F, 4.0F}) {
      Problem problem = square_problem(200, 2, 1, 64, dtype);
      problem.softmax_scale = scale;
      SCOPED_TRACE(scale);
      expect_all_kernels_pass(problem, "causal", 4);
    }
  }
}

// Scores of some 50: rows see one key in effect, and the roundings of a score move tiny weights by
// more than float32 itself. Seed 2 has a key whose dV is one row with P of about 1e-10.
TEST(HonestKernelsOfPeakedInputs, PassForManySeeds) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      expect_all_kernels_pass(square_problem(65, 4, 2, 32, dtype), "causal", seed,
                              InputStyle::peaked);
      expect_all_kernels_pass(square_problem(127, 2, 1, 64, dtype), "global_sliding_window", seed,
                              InputStyle::peaked);
    }
  }
}

/// An honest kernel of another make, in scalar code: keys from the last to the first, P divided by
/// its sum before it is rounded, dS rounded before it is scaled, dK summed in type T from head to
/// head. P and dS are rounded to type Rounded.
template <typename T, typename Rounded = T>
class Backwards {
 public:
  Backwards(const Problem& problem, const Mask& mask, const Inputs& inputs, const Outputs& out)
      : p_(problem), mask_(mask), in_(inputs), out_(out) {}

  void run() {
    for (int head = 0; head < p_.heads_k; ++head) {
      for (std::int64_t k = 0; k < p_.tokens_k; ++k) {
        std::fill_n(out_.dk.view().row<T>(k, head), p_.head_dim, T(0));
        std::fill_n(out_.dv.view().row<T>(k, head), p_.head_dim, T(0));
      }
    }
    for (int head = 0; head < p_.heads_q; ++head) run_head(head);
  }

 private:
  using Row = std::vector<float>;

  static Row load(const TensorView& tensor, std::int64_t token, std::int64_t head) {
    const T* row = tensor.row<T>(token, head);
    Row values;
    for (std::int64_t c = 0; c < tensor.dim; ++c) values.push_back(float(row[c]));
    return values;
  }
  static void store(const Row& row, const TensorView& tensor, std::int64_t token,
                    std::int64_t head) {
    std::ranges::transform(row, tensor.row<T>(token, head), [](float x) { return T(x); });
  }
  static float dot(const Row& a, const Row& b) {
    float sum = 0;
    for (std::size_t c = a.size(); c-- > 0;) sum += a[c] * b[c];
    return sum;
  }
  static void add(float weight, const Row& row, Row& sum) {
    for (std::size_t c = 0; c < row.size(); ++c) sum[c] += weight * row[c];
  }
  static float rounded(float x) { return float(Rounded(x)); }

  void run_head(int head) {
    const int head_k = head / p_.group_size();
    const Row zero(static_cast<std::size_t>(p_.head_dim));
    std::vector<Row> dk(static_cast<std::size_t>(p_.tokens_k), zero);
    std::vector<Row> dv = dk;
    for (std::int64_t q = 0; q < p_.tokens_q; ++q) {
      const Row query = load(in_.q.view(), q, head);
      const Row dout = load(in_.dout.view(), q, head);
      Row weights(static_cast<std::size_t>(p_.tokens_k));
      float sum = 0;
      for (std::int64_t k = p_.tokens_k - 1; k >= 0; --k) {
        if (!mask_.allows(0, q, k)) continue;
        weights[k] = std::exp(p_.scale() * dot(query, load(in_.k.view(), k, head_k)));
        sum += weights[k];
      }
      out_.lse.view().head(head)[q] = std::log(sum);
      Row o = zero;
      for (std::int64_t k = p_.tokens_k - 1; k >= 0; --k) {
        weights[k] /= sum;
        add(rounded(weights[k]), load(in_.v.view(), k, head_k), o);
      }
      store(o, out_.o.view(), q, head);
      const float delta = dot(dout, load(out_.o.view(), q, head));
      Row dq = zero;
      for (std::int64_t k = p_.tokens_k - 1; k >= 0; --k) {
        const float dp = dot(dout, load(in_.v.view(), k, head_k));
        const float ds = rounded(weights[k] * (dp - delta)) * p_.scale();
        add(ds, load(in_.k.view(), k, head_k), dq);
        add(ds, query, dk[k]);
        add(rounded(weights[k]), dout, dv[k]);
      }
      store(dq, out_.dq.view(), q, head);
    }
    for (std::int64_t k = 0; k < p_.tokens_k; ++k) {
      add(1, load(out_.dk.view(), k, head_k), dk[k]);
      add(1, load(out_.dv.view(), k, head_k), dv[k]);
      store(dk[k], out_.dk.view(), k, head_k);
      store(dv[k], out_.dv.view(), k, head_k);
    }
  }

  const Problem p_;
  const Mask mask_;
  const Inputs& in_;
  const Outputs& out_;
};

template <typename T>
void expect_backwards_passes(DType dtype) {
  for (const char* name : {"causal", "sliding_window", "prefix_lm_causal"}) {
    SCOPED_TRACE(name);
    const Problem problem = square_problem(200, 4, 2, 32, dtype);
    const Mask mask = make_mask(name, problem);
    const Inputs inputs = make_inputs(problem, 6);
    const Outputs outputs(problem);
    Backwards<T>(problem, mask, inputs, outputs).run();
    const Reference reference(problem, mask, inputs, {1000, 1}, 1);
    expect_room(check_forward(reference, outputs), "forward");
    expect_room(check_backward(reference, outputs, inputs), "backward");
  }
}

TEST(HonestKernelsOfAnotherMake, PassWithOtherOrdersAndRoundings) {
  expect_backwards_passes<BFloat16>(DType::bfloat16);
  expect_backwards_passes<Float16>(DType::float16);
}

// A kernel that computes in bfloat16 what was asked in float16 is wrong, though it is a right one.
TEST(HonestKernelsOfAnotherMake, FailWithRoundingsOfACoarserType) {
  const Problem half = square_problem(200, 4, 2, 32, DType::float16);
  const Mask mask = make_mask("causal", half);
  const Inputs inputs = make_inputs(half, 6);
  const Outputs outputs(half);
  Backwards<Float16, BFloat16>(half, mask, inputs, outputs).run();
  const Reference reference(half, mask, inputs, {1000, 1}, 1);
  EXPECT_FALSE(check_forward(reference, outputs).ok);
  EXPECT_FALSE(check_backward(reference, outputs, inputs).ok);
}

}  // namespace
}  // namespace longca
