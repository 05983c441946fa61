// dQ's accumulators pass from CTA to CTA through device memory: the first one stores, others add
// behind it. Runs small problems whose CTAs meet at the same accumulators again and again.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/kernels/slice/slice.h"
#include "gpu/kernel_test.h"
#include "gpu/slice/slice_variant.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

struct Setting {
  std::string name;
  Problem problem;
  Mask mask;
  int runs;
};

class SliceDqHandover : public KernelTest, public ::testing::WithParamInterface<SliceVariant> {
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

  Setting of_mask(const std::string& name, std::int64_t tokens, int heads_q, int heads_k,
                  int runs) const {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = tokens;
    spec.lengths = "pile";
    return {name, problem_of(tokens, tokens, heads_q, heads_k), generate_mask(spec).mask, runs};
  }
  Setting of_blocks(const std::string& name, std::int64_t tokens, int heads_q, int heads_k,
                    int runs) const {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = tokens;
    spec.heads_q = heads_q;
    spec.heads_k = heads_k;
    spec.block = 64;
    spec.density = 0.3;
    return {name, problem_of(tokens, tokens, heads_q, heads_k), generate_mask(spec).mask, runs};
  }
  Setting full(std::int64_t q, std::int64_t k, int heads_q, int heads_k, int runs) const {
    return {"full", problem_of(q, k, heads_q, heads_k),
            Mask::from_slices(q, k, {{0, q, 0, k, MaskSliceType::full}}), runs};
  }

  /// A plan of one problem whose memory is poisoned before every call: an addition to an
  /// accumulator that nobody has stored to gives NaN.
  class Runner {
   public:
    Runner(const Kernel& kernel, const Problem& problem, const Mask& mask, const Inputs& inputs,
           const Outputs& forward)
        : gpu_(Device::get(DeviceKind::cuda)), plan_(kernel.plan(problem, mask)), out_(problem) {
      args_ = backward_args(inputs, out_);
      args_.o = forward.o.view();
      args_.lse = forward.lse.view();
      args_.stream = gpu_.stream();
    }

    void run() {
      PlanScratch* scratch = plan_->scratch();
      gpu_.fill(scratch->data(), 0xff, scratch->bytes());
      for (const Tensor* tensor : tensors()) {
        gpu_.fill(tensor->view().data, 0xff, tensor->bytes());
      }
      plan_->backward(args_);
      gpu_.synchronize();
    }
    std::uint64_t hash(const Tensor& tensor) {
      return gpu_.hash(0, tensor.view().data, tensor.bytes());
    }
    std::uint64_t hash() {
      std::uint64_t all = 0;
      for (const Tensor* tensor : tensors()) {
        all = gpu_.hash(all, tensor->view().data, tensor->bytes());
      }
      return all;
    }
    std::vector<std::uint16_t> elements(const Tensor& tensor) {
      std::vector<std::uint16_t> elements(static_cast<std::size_t>(tensor.bytes()) / 2);
      gpu_.copy(elements.data(), tensor.view().data, tensor.bytes());
      return elements;
    }
    std::vector<const Tensor*> tensors() const { return {&out_.dq, &out_.dk, &out_.dv}; }
    const Outputs& out() const { return out_; }
    const BackwardArgs& args() const { return args_; }

   private:
    Device& gpu_;
    std::unique_ptr<Plan> plan_;
    Outputs out_;
    BackwardArgs args_;
  };

  /// Elements that differ by more than additions in another order explain; NaN differs.
  static std::size_t far_apart(const std::vector<std::uint16_t>& a,
                               const std::vector<std::uint16_t>& b) {
    const auto value = [](std::uint16_t bits) {
      return std::bit_cast<float>(std::uint32_t{bits} << 16);
    };
    std::size_t far = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i] && std::isfinite(value(a[i]))) continue;
      far += !(std::abs(value(a[i]) - value(b[i])) <= std::abs(value(b[i])) / 100 + 1e-4F);
    }
    return far;
  }

  /// Holds repeated calls to the result in the fixed order, which is held to the reference.
  /// `same_bits`: each row of dQ is a sum of two additions at most, whose order does not matter.
  void stress(const Setting& setting, bool same_bits) {
    SCOPED_TRACE(setting.name + " of " + std::to_string(setting.problem.tokens_q) + " × " +
                 std::to_string(setting.problem.tokens_k));
    Problem ordered = setting.problem;
    ordered.deterministic = true;
    const Inputs inputs = make_inputs(ordered, kSeed);
    const Outputs forward = solve(ordered, setting.mask);
    Runner expected(*kernel_, ordered, setting.mask, inputs, forward);
    expected.run();
    const auto verifier = make_verifier(ordered, setting.mask, inputs, {}, kSeed);
    const Verdict verdict = verifier->check_backward(expected.args());
    EXPECT_TRUE(verdict.ok) << verdict.reason;
    const std::uint64_t bits = expected.hash();
    int others = 0;
    for (int i = 0; i < setting.runs; ++i) {
      expected.run();
      others += expected.hash() != bits;
    }
    EXPECT_EQ(others, 0) << "of " << setting.runs << " calls in a fixed order";

    std::vector<std::vector<std::uint16_t>> elements;
    for (const Tensor* tensor : expected.tensors()) elements.push_back(expected.elements(*tensor));
    const std::uint64_t dq_bits = expected.hash(expected.out().dq);
    Runner any(*kernel_, setting.problem, setting.mask, inputs, forward);
    std::size_t far = 0;
    int other_bits = 0;
    for (int i = 0; i < setting.runs; ++i) {
      any.run();
      other_bits += any.hash(any.out().dq) != dq_bits;
      if (same_bits && i > 0) continue;
      for (std::size_t j = 0; j < elements.size(); ++j) {
        far += far_apart(any.elements(*any.tensors()[j]), elements[j]);
      }
    }
    EXPECT_EQ(far, 0U);
    if (same_bits) {
      EXPECT_EQ(other_bits, 0) << "of " << setting.runs << " calls in any order";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, SliceDqHandover, ::testing::ValuesIn(slice_variants()),
                         variant_name);

TEST_P(SliceDqHandover, TwoAdditionsGiveTheSameBitsInAnyOrder) {
  // Key tiles of 256 dimensions are added in two passes.
  const std::int64_t keys = GetParam().dims.value_dim > 128 ? 128 : 256;
  stress(full(4096, keys, 8, 1, 400), true);
  stress(full(300, keys, 64, 8, 400), true);
  stress(of_mask("sliding_window_causal", keys * 25 / 32, 64, 8, 200), true);
}

/// Hundreds of CTAs add to a few query tiles.
TEST_P(SliceDqHandover, ManyKeyTilesMeetAtFewQueryTiles) {
  stress(full(64, 16384, 8, 1, 100), false);
  stress(full(8, 16384, 8, 1, 100), false);
}

/// The last two have enough query tiles that dQ is rounded while others still add.
TEST_P(SliceDqHandover, MasksWithUnevenRows) {
  stress(of_mask("causal", 2048, 8, 1, 60), false);
  stress(of_mask("shared_question", 1100, 8, 2, 60), false);
  stress(of_mask("document", 2200, 32, 4, 20), false);
  stress(of_mask("causal_document", 4096, 32, 4, 20), false);
}

/// Most query tiles see one half of a key tile: the two warpgroups of a CTA are at different ones,
/// and hand over dQ in their own time.
TEST_P(SliceDqHandover, QueryTilesThatSeeHalfOfAKeyTile) {
  stress(of_blocks("block_sparse", 4096, 8, 8, 20), false);
  stress(of_blocks("block_sparse", 2048, 32, 4, 20), false);
  stress(of_blocks("block_sparse_variable", 2048, 16, 2, 20), false);
}

}  // namespace
}  // namespace longca::testing
