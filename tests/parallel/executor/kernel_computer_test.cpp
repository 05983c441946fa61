// How steps are computed with a kernel: which plans it makes, what it refuses in whose words, what
// it says of itself.
#include "parallel/executor/kernel_computer.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "attention/api/kernel.h"
#include "parallel/executor/plain_kernel.h"
#include "parallel/executor/thread_ranks.h"
#include "parallel/schemes/scheme.h"

namespace longca::test {
namespace {

/// One rank's plan of a scheme, prepared with a kernel; nothing moves.
class Prepared {
 public:
  Prepared(const std::string& scheme, const Kernel& kernel, int ranks,
           Merging merging = Merging::automatic) {
    problem_.problem.tokens_q = problem_.problem.tokens_k = kTokens;
    problem_.problem.heads_q = problem_.problem.heads_k = 8;
    problem_.problem.head_dim = 16;
    problem_.problem.dtype = DType::bfloat16;
    problem_.problem.backward = true;
    problem_.ranks = ranks;
    problem_.mask = Mask::from_slices(kTokens, kTokens, {{0, kTokens, 0, kTokens}});
    plan_ = find_scheme(scheme).plan(problem_, 0);
    computer_ = std::make_unique<KernelComputer>(kernel, problem_.problem, merging);
    ThreadRanks threads(1);
    threads.run([&](Communicator& communicator) {
      support_ = Executor(plan_, problem_.problem, tensors(communicator), communicator, *computer_)
                     .support();
    });
  }
  const Support& support() const { return support_; }
  KernelComputer& computer() { return *computer_; }
  std::string merging() const {
    const auto notes = computer_->notes();
    return notes.contains("merging") ? notes.at("merging") : "";
  }

 private:
  static constexpr std::int64_t kTokens = 64;
  RankTensors tensors(Communicator& communicator) const {
    const Problem& p = problem_.problem;
    const std::int64_t rows = kTokens / problem_.ranks;
    const auto tensor = [&](std::int64_t heads) {
      return TensorView{communicator.allocate(rows * heads * p.head_dim * 2),
                        p.dtype,
                        rows,
                        heads,
                        p.head_dim,
                        heads * p.head_dim,
                        p.head_dim};
    };
    RankTensors t;
    for (TensorView* view : {&t.q, &t.k, &t.v, &t.dout, &t.o, &t.dq, &t.dk, &t.dv}) {
      *view = tensor(8);
    }
    t.lse = {static_cast<float*>(communicator.allocate(rows * 8 * 4)), 8, rows, rows};
    return t;
  }

  ParallelProblem problem_{.problem = {}, .mask = Mask::from_slices(0, 0, {}), .lengths = {}};
  RankPlan plan_;
  std::unique_ptr<KernelComputer> computer_;
  Support support_;
};

/// Steps of 8 rows × 8 keys × `heads`, each with a mask of its own, of either pass.
RankPlan steps_of(const std::vector<std::pair<MaskSliceType, int>>& steps) {
  using enum TensorRole;
  RankPlan plan;
  for (const TensorRole role : {q, k, v, o, lse, dout, dq, dk, dv}) {
    plan.buffers.push_back({.name = {}, .role = role, .tokens = 8, .heads = 4});
  }
  const auto region = [](TensorRole role, int heads) {
    return Region{static_cast<int>(role), {0, 8}, {0, heads}};
  };
  for (const auto& [type, heads] : steps) {
    const int mask = static_cast<int>(plan.masks.size());
    plan.masks.push_back(Mask::from_slices(8, 8, {{0, 8, 0, 8, type}}));
    const auto at = [&, heads = heads](TensorRole role) { return region(role, heads); };
    plan.forward.push_back({Attend{at(q), at(k), at(v), at(o), at(lse), mask}, {}});
    plan.backward.push_back({AttendBackward{at(dout), at(q), at(k), at(v), at(o), at(lse), at(dq),
                                            at(dk), at(dv), mask},
                             {}});
  }
  return plan;
}

int plans_made(const RankPlan& plan, const Kernel& kernel, const int& count) {
  Problem problem;
  problem.head_dim = 16;
  ThreadRanks(1).run([&](Communicator& communicator) {
    KernelComputer computer(kernel, problem);
    const Executor executor(plan, problem, {}, communicator, computer);
    EXPECT_TRUE(executor.support().ok()) << executor.support().reason;
  });
  return count;
}

TEST(KernelComputer, SharesPlansOfEqualSteps) {
  using enum MaskSliceType;
  const PlainKernel equal(Abilities{});
  EXPECT_EQ(plans_made(steps_of({{causal, 4}, {causal, 4}, {causal, 4}}), equal, equal.plans), 1);
  const PlainKernel different(Abilities{});
  EXPECT_EQ(plans_made(steps_of({{causal, 4}, {full, 4}, {causal, 2}, {full, 4}}), different,
                       different.plans),
            3);
}

/// The plan of these steps, each of which waits for keys.
RankPlan waiting_steps_of(const std::vector<std::pair<MaskSliceType, int>>& steps) {
  RankPlan plan = steps_of(steps);
  plan.ranks = 2;
  Exchange exchange;
  for (const int keys : {1, 2}) exchange.receives.push_back({1, plan.whole(keys)});
  for (Op& op : plan.backward) op.after = {0};
  plan.backward.insert(plan.backward.begin(), Op{exchange, {}, Lane::communication});
  return plan;
}

TEST(KernelComputer, PreparesRowsOfStepsThatHaveTheirPlanForThemselves) {
  using enum MaskSliceType;
  const auto kept = [](const RankPlan& plan, bool strided = true, std::int64_t bytes = 1) {
    const PlainKernel kernel({.bytes_of_rows = bytes, .strided = strided});
    plans_made(plan, kernel, kernel.plans);
    return kernel.rows_kept;
  };
  EXPECT_EQ(kept(waiting_steps_of({{causal, 4}, {full, 4}})), 2);
  EXPECT_EQ(kept(waiting_steps_of({{causal, 4}, {full, 4}, {causal, 4}})), 1);
  EXPECT_EQ(kept(steps_of({{causal, 4}, {full, 4}})), 0) << "nothing waits";
  EXPECT_EQ(kept(waiting_steps_of({{causal, 4}, {full, 2}}), false), 1) << "rows are copied first";
  EXPECT_EQ(kept(waiting_steps_of({{causal, 4}, {full, 4}}), true, 100 << 20), 1) << "no room";
}

/// A kernel whose plans want scratch by their heads, and note what they were lent when they end.
class Scratching final : public Kernel {
 public:
  class Noted final : public longca::Plan {
   public:
    Noted(const Scratching& kernel, std::int64_t bytes)
        : kernel_(kernel), scratch_(MemoryTracker::host(), bytes) {}
    ~Noted() override { kernel_.seen.insert(scratch_.data()); }
    void forward(const ForwardArgs&) override {}
    void backward(const BackwardArgs&) override {}
    std::int64_t workspace_bytes() const override { return scratch_.own_bytes(); }
    PlanScratch* scratch() override { return &scratch_; }

   private:
    const Scratching& kernel_;
    PlanScratch scratch_;
  };
  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  Support supports(const Problem&, const Mask&) const override { return {}; }
  std::unique_ptr<longca::Plan> plan(const Problem& p, const Mask&) const override {
    ++plans;
    return std::make_unique<Noted>(*this, 100000 * p.heads_q);
  }

  mutable std::set<std::byte*> seen;
  mutable int plans = 0;

 private:
  PlainKernel inner_{Abilities{}};
};

TEST(KernelComputer, LendsAllPlansTheScratchOfTheLargest) {
  const Scratching kernel;
  const RankPlan plan = steps_of({{MaskSliceType::causal, 4}, {MaskSliceType::full, 2}});
  Problem problem;
  problem.head_dim = 16;
  ThreadRanks(1).run([&](Communicator& communicator) {
    KernelComputer computer(kernel, problem);
    const Executor executor(plan, problem, {}, communicator, computer);
    EXPECT_EQ(computer.workspace_bytes(), 400000);
  });
  EXPECT_EQ(kernel.plans, 2);
  EXPECT_EQ(kernel.seen.size(), 1U);
}

TEST(KernelComputer, SaysWhoMerges) {
  EXPECT_EQ(Prepared("ring_p2p", PlainKernel(Abilities{}), 4).merging(), "by the kernel");
  EXPECT_EQ(Prepared("ring_p2p", PlainKernel({.accumulate = false}), 4).merging(),
            "after the kernel, up to 4 results in one pass");
  EXPECT_EQ(Prepared("ring_p2p", PlainKernel(Abilities{}), 4, Merging::after).merging(),
            "after the kernel, up to 4 results in one pass");
  EXPECT_EQ(Prepared("ulysses", PlainKernel({.accumulate = false}), 4).merging(), "");
  const PlainKernel last({.accumulate = false, .merges_earlier = true});
  EXPECT_EQ(Prepared("ring_p2p", last, 2).merging(),
            "by the kernel's last call where two results meet, else after it, up to 4 in one pass");
  EXPECT_EQ(Prepared("ring_p2p", last, 4).merging(),
            "after the kernel, up to 4 results in one pass");
}

TEST(KernelComputer, LetsTheKernelSumTheGradientsOfKeys) {
  const PlainKernel kernel({.sums_keys = true, .says_workspace = false});
  const std::string what = "gradients of keys";
  Prepared after("ring_p2p", kernel, 2, Merging::after);
  EXPECT_EQ(after.computer().notes().at(what), "summed by the kernel, in float32");
  // A part of dq is all that needs memory.
  const std::int64_t rows = 32, heads = 8, dim = 16;
  EXPECT_EQ(after.computer().workspace_bytes(), rows * heads * (dim * 2 + 4));
  EXPECT_FALSE(Prepared("ring_p2p", kernel, 2).computer().notes().contains(what));
  EXPECT_FALSE(Prepared("ulysses", kernel, 2, Merging::after).computer().notes().contains(what));
}

/// What only one step writes is not written anywhere else: of two steps over the same rows one has
/// memory for its part, the other has none but the result's.
TEST(KernelComputer, WritesOneOfTwoPartsStraightIntoTheResult) {
  Prepared merged("ring_p2p", PlainKernel({.accumulate = false, .says_workspace = false}), 2);
  const std::int64_t rows = 32, heads = 8, dim = 16;
  const std::int64_t part = rows * heads * (dim * 2 + 4);
  const std::int64_t gradients_of_keys = 2 * rows * heads * dim * 2;
  EXPECT_EQ(merged.computer().workspace_bytes(), part + gradients_of_keys);
}

/// Then the parts of o and dq are written into the results: memory is for gradients of keys alone.
TEST(KernelComputer, LetsTheKernelMergeTheOneEarlierResult) {
  const PlainKernel kernel({.accumulate = false, .merges_earlier = true, .says_workspace = false});
  Prepared merged("ring_p2p", kernel, 2);
  const std::int64_t rows = 32, heads = 8, dim = 16;
  EXPECT_EQ(merged.computer().workspace_bytes(), 2 * rows * heads * dim * 2);
}

TEST(KernelComputer, NeedsTheLseToMerge) {
  const PlainKernel kernel({.accumulate = false, .returns_lse = false});
  EXPECT_EQ(Prepared("ring_p2p", kernel, 2).support().code, StatusCode::unsupported);
  EXPECT_EQ(Prepared("ring_p2p", kernel, 2).support().reason,
            "step 0 (32 × 32, 1 slice): plain returns no lse to merge results by");
  EXPECT_TRUE(Prepared("ulysses", kernel, 2).support().ok());
}

TEST(KernelComputer, NeedsABackwardPassOfGivenLse) {
  const PlainKernel kernel({.gradient_of_parts = false});
  EXPECT_EQ(Prepared("ring_p2p", kernel, 2).support().reason,
            "step 0 (32 × 32, 1 slice): plain's backward pass goes by its own forward pass, not by "
            "the lse that ranks share");
}

TEST(KernelComputer, RefusesInTheKernelsWords) {
  class Square final : public Kernel {
   public:
    const Capabilities& capabilities() const override { return inner_.capabilities(); }
    Support supports(const Problem& p, const Mask&) const override {
      return p.heads_q == 8 ? Support{} : Support::unsupported("it has 8 heads or none");
    }
    std::unique_ptr<longca::Plan> plan(const Problem& p, const Mask& mask) const override {
      return inner_.plan(p, mask);
    }

   private:
    PlainKernel inner_{Abilities{}};
  };
  EXPECT_EQ(Prepared("ulysses", Square(), 2).support().reason,
            "step 0 (64 × 64, 1 slice): it has 8 heads or none");
}

TEST(KernelComputer, CountsItsWorkspace) {
  Prepared one("ulysses", PlainKernel({.accumulate = false}), 2);
  Prepared merged("ring_p2p", PlainKernel({.accumulate = false}), 2);
  EXPECT_GT(one.computer().workspace_bytes(), 0);
  // Two slots for o and its lse.
  EXPECT_GE(merged.computer().workspace_bytes(), 2 * 32 * 8 * (16 * 2 + 4));
}

}  // namespace
}  // namespace longca::test
