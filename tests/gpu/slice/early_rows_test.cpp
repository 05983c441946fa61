// Backward calls whose rows were prepared before, between calls of other plans with the same
// scratch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/kernels/slice/slice.h"
#include "core/memory.h"
#include "gpu/kernel_test.h"
#include "gpu/small_mask.h"

namespace longca::testing {
namespace {

constexpr Heads kHeads = {8, 2};

/// A plan that keeps its rows, and tensors for its calls.
struct Call {
  Call(const Kernel& kernel, Outputs solved, const Problem& p, Mask m)
      : problem(p),
        mask(std::move(m)),
        inputs(make_inputs(p, kSeed)),
        outputs(std::move(solved)),
        plan(kernel.plan(p, mask)),
        args(backward_args(inputs, outputs)) {
    args.stream = gpu().stream();
  }
  static Device& gpu() { return Device::get(DeviceKind::cuda); }
  PlanScratch& scratch() { return *plan->scratch(); }

  void prepare() { plan->prepare_rows(args); }
  void run() { plan->backward(args); }
  /// Whatever an earlier call wrote.
  void poison() {
    gpu().synchronize();
    for (const Tensor* tensor : {&outputs.dq, &outputs.dk, &outputs.dv}) {
      gpu().fill(tensor->view().data, 0xff, tensor->bytes());
    }
  }
  auto hash() {
    gpu().synchronize();
    return gpu().hash(gpu().hash(gpu().hash(0, outputs.dq.view().data, outputs.dq.bytes()),
                                 outputs.dk.view().data, outputs.dk.bytes()),
                      outputs.dv.view().data, outputs.dv.bytes());
  }
  void expect_right() {
    gpu().synchronize();
    if (!verifier) verifier = make_verifier(problem, mask, inputs, {.seconds = 5}, kSeed);
    const Verdict verdict = verifier->check_backward(args);
    EXPECT_TRUE(verdict.ok) << verdict.reason;
  }

  Problem problem;
  Mask mask;
  Inputs inputs;
  Outputs outputs;  ///< O and LSE are right
  std::unique_ptr<Plan> plan;
  BackwardArgs args;
  std::unique_ptr<Verifier> verifier;
};

class EarlyRows : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    if (gpu().properties().architecture != 90) {
      GTEST_SKIP() << "the " << gpu().properties().name << " is not of compute capability 9.0";
    }
    kernel_ = make_slice();
  }

  std::unique_ptr<Call> call(const Mask& mask, bool deterministic, Heads heads = kHeads) {
    Problem problem = problem_of(mask.q_tokens(), mask.k_tokens(), heads.q, heads.k);
    problem.deterministic = deterministic;
    return std::make_unique<Call>(*kernel_, solve(problem, mask), problem, mask);
  }

  /// Memory that all of them work in, poisoned.
  Buffer share_scratch(const std::vector<Call*>& calls) {
    std::int64_t bytes = 0;
    for (Call* call : calls) {
      const std::int64_t before = call->scratch().bytes();
      const std::int64_t workspace = call->plan->workspace_bytes();
      EXPECT_EQ(call->plan->keep_rows(1), 0);
      EXPECT_GT(call->plan->keep_rows(1 << 30), 0);
      EXPECT_LT(call->scratch().bytes(), before);
      EXPECT_EQ(call->plan->workspace_bytes(), workspace) << "what is kept counts";
      bytes = std::max(bytes, call->scratch().bytes());
    }
    Buffer scratch(gpu().memory(), bytes);
    gpu().fill(scratch.data(), 0xff, scratch.bytes());
    for (Call* call : calls) call->scratch().lend(scratch.as<std::byte>());
    return scratch;
  }
};

/// Keys of one CTA, keys that several share, and rows of which only some are there.
std::vector<Mask> masks() {
  return {small_mask("causal_document", 1100, kHeads), small_mask("shared_question", 1100, kHeads),
          Mask::from_slices(700, 1100,
                            {{0, 100, 0, 500, MaskSliceType::causal},
                             {130, 700, 400, 1100, MaskSliceType::causal}})};
}

TEST_F(EarlyRows, AreLeftOutOfTheCall) {
  for (const bool deterministic : {false, true}) {
    for (const Mask& mask : masks()) {
      SCOPED_TRACE(std::to_string(mask.q_tokens()) + (deterministic ? ", ordered" : ""));
      const auto it = call(mask, deterministic);
      const auto other = call(small_mask("full", 1300, kHeads), false);
      const Buffer scratch = share_scratch({it.get(), other.get()});
      const auto alone = it->hash();  // of a call that was not prepared
      // Copies that nobody may read behind the preparation.
      const Outputs& right = it->outputs;
      const Outputs early(it->problem);
      other->poison();
      for (int i = 0; i < 2; ++i) {
        gpu().copy(early.o.view().data, right.o.view().data, early.o.bytes());
        gpu().copy(early.lse.view().data, right.lse.view().data, early.lse.bytes());
        it->args.o = early.o.view();
        it->args.lse = early.lse.view();
        it->poison();
        it->prepare();
        gpu().synchronize();
        gpu().fill(early.o.view().data, 0xff, early.o.bytes());
        gpu().fill(early.lse.view().data, 0xff, early.lse.bytes());
        other->run();
        it->run();
        it->args.o = right.o.view();
        it->args.lse = right.lse.view();
        it->expect_right();
        if (deterministic) {
          EXPECT_EQ(it->hash(), alone);
        }
        it->poison();
        it->run();  // nothing is left of the preparation
        it->expect_right();
      }
      other->expect_right();
    }
  }
}

/// Without a pause of the host, so that each kernel starts while the one before it ends.
TEST_F(EarlyRows, OfSeveralCallsDoNotMix) {
  for (const bool deterministic : {false, true}) {
    SCOPED_TRACE(deterministic ? "ordered" : "unordered");
    std::vector<std::unique_ptr<Call>> calls;
    for (const Mask& mask : masks()) calls.push_back(call(mask, deterministic));
    std::vector<decltype(calls[0]->hash())> alone;
    for (const auto& call : calls) alone.push_back(call->hash());
    const Buffer scratch = share_scratch({calls[0].get(), calls[1].get(), calls[2].get()});
    for (const auto& call : calls) call->poison();
    for (int i = 0; i < 20; ++i) {
      for (const auto& call : calls) call->prepare();
      for (const auto& call : calls) call->run();
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      SCOPED_TRACE(i);
      calls[i]->expect_right();
      if (deterministic) {
        EXPECT_EQ(calls[i]->hash(), alone[i]);
      }
    }
  }
}

TEST_F(EarlyRows, OfOtherTensorsAreNotThoseOfTheCall) {
  const auto it = call(masks()[1], false);
  const Buffer scratch = share_scratch({it.get()});
  const Outputs poisoned(it->problem);
  BackwardArgs other = it->args;
  other.lse = poisoned.lse.view();
  it->poison();
  it->plan->prepare_rows(other);
  it->run();
  it->expect_right();
}

/// As a rank of the benchmark has it: so many heads that last items are cut, and that dQ is written
/// while others still compute.
TEST_F(EarlyRows, OfARanksCall) {
  const Mask mask = Mask::from_slices(2800, 5600,
                                      {{0, 1300, 0, 4100, MaskSliceType::causal},
                                       {1300, 2000, 4100, 4800, MaskSliceType::causal},
                                       {2000, 2800, 4800, 5600, MaskSliceType::causal}});
  const auto it = call(mask, false, {64, 8});
  const auto other = call(small_mask("causal", 3000, {64, 8}), false, {64, 8});
  const Buffer scratch = share_scratch({it.get(), other.get()});
  it->poison();
  other->poison();
  for (int i = 0; i < 4; ++i) {
    it->prepare();
    other->prepare();
    it->run();
    other->run();
  }
  it->expect_right();
  other->expect_right();
}

TEST_F(EarlyRows, AreNotOfTheGenericPathNorOfForwardPlans) {
  const Mask mask = small_mask("causal", 300);
  const auto keeps = [&](SlicePath path, bool backward) {
    Problem problem = problem_of(300, 300, 1, 1);
    problem.backward = backward;
    const auto plan = make_slice(path)->plan(problem, mask);
    return plan->keep_rows(1 << 30);
  };
  EXPECT_GT(keeps(SlicePath::sm90, true), 0);
  EXPECT_EQ(keeps(SlicePath::sm90, false), 0);
  EXPECT_EQ(keeps(SlicePath::sm80, true), 0);
}

}  // namespace
}  // namespace longca::testing
