#include "bench/ranks/gather_results.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "attention/api/registry.h"
#include "bench/cell/problem.h"
#include "bench/ranks/shard_tensors.h"
#include "bench/suite/scheme_axes.h"
#include "dist/dist_test.h"
#include "parallel/executor/kernel_computer.h"
#include "parallel/schemes/scheme.h"

namespace longca::testing {
namespace {

Case small_case(const std::string& scheme) {
  Case c;
  c.kernel = "flash";
  c.mask = "causal";
  c.tokens = 515;  // no rank count divides it
  c.heads_q = 8;
  c.heads_k = 4;
  c.head_dim = 32;
  c.dtype = DType::float32;
  c.pass = Pass::backward;
  c.scheme = scheme;
  c.ranks = world().control().size();
  c.shard = std::string(to_string(find_scheme(scheme).published_shard()));
  c.transport = "mpi";
  return c;
}

/// Both passes of a case over all ranks, and its results on rank 0.
class Ran {
 public:
  explicit Ran(const Case& c)
      : problem_(c.problem()),
        generated_(case_mask(c)),
        communicator_(world().make_communicator()),
        plan_(
            find_scheme(*c.scheme).plan(parallel_problem(c, generated_, 1), communicator_->rank())),
        tensors_(problem_, shard_of(plan_), *communicator_),
        computer_(KernelRegistry::global().find(c.kernel, problem_.device), problem_),
        executor_(plan_, problem_, tensors_.views(), *communicator_, computer_) {
    tensors_.draw(c.seed, c.input_style(), generated_.lengths);
    executor_.forward(nullptr);
    executor_.backward(nullptr);
  }

  Outputs gathered(const CheckedHeads& heads) const {
    Outputs whole = Outputs::for_problem(problem_);
    whole.poison_forward();
    whole.poison_backward();
    gather_results(world().control(), Device::get(DeviceKind::cpu), plan_, executor_, kRoles, heads,
                   &whole);
    return whole;
  }
  const Problem& problem() const { return problem_; }

 private:
  static constexpr std::array kRoles{TensorRole::o, TensorRole::lse, TensorRole::dq, TensorRole::dk,
                                     TensorRole::dv};
  Problem problem_;
  GeneratedMask generated_;
  std::unique_ptr<Communicator> communicator_;
  RankPlan plan_;
  ShardTensors tensors_;
  KernelComputer computer_;
  Executor executor_;
};

/// Heads of `some` that hold the same bytes as those of `all`.
std::string equal_heads(const TensorView& some, const TensorView& all) {
  std::string equal;
  const auto row_bytes = static_cast<std::size_t>(some.dim) * sizeof(float);
  for (std::int64_t head = 0; head < some.heads; ++head) {
    bool same = true;
    for (std::int64_t token = 0; token < some.tokens; ++token) {
      const auto offset = token * some.token_stride + head * some.head_stride;
      same = same && std::memcmp(static_cast<const float*>(some.data) + offset,
                                 static_cast<const float*>(all.data) + offset, row_bytes) == 0;
    }
    equal += same ? std::to_string(head) : "";
  }
  return equal;
}

std::string equal_heads(const LseView& some, const LseView& all) {
  std::string equal;
  const auto bytes = static_cast<std::size_t>(some.tokens) * sizeof(float);
  for (int head = 0; head < some.heads; ++head) {
    if (std::memcmp(some.head(head), all.head(head), bytes) == 0) equal += std::to_string(head);
  }
  return equal;
}

/// Whether every rank's part is there: what is missing is as nobody computes it.
bool is_filled(const Outputs& outputs, const Problem& problem) {
  const Outputs poisoned = Outputs::for_problem(problem);
  poisoned.poison_forward();
  poisoned.poison_backward();
  return equal_heads(outputs.o.view(), poisoned.o.view()).empty() &&
         equal_heads(outputs.lse.view(), poisoned.lse.view()).empty() &&
         equal_heads(outputs.dq.view(), poisoned.dq.view()).empty() &&
         equal_heads(outputs.dk.view(), poisoned.dk.view()).empty() &&
         equal_heads(outputs.dv.view(), poisoned.dv.view()).empty();
}

TEST(GatherResults, BringsTheHeadsAskedForAndNoOther) {
  for (const char* scheme : {"ulysses", "usp", "magi"}) {
    const Ran ran(small_case(scheme));
    const Outputs all = ran.gathered({{{0, 8}}, {{0, 4}}});
    const Outputs some = ran.gathered({{{1, 3}, {6, 7}}, {{2, 4}}});
    if (world().control().rank() != 0) continue;
    EXPECT_TRUE(is_filled(all, ran.problem())) << scheme;
    EXPECT_EQ(equal_heads(some.o.view(), all.o.view()), "126") << scheme;
    EXPECT_EQ(equal_heads(some.lse.view(), all.lse.view()), "126") << scheme;
    EXPECT_EQ(equal_heads(some.dq.view(), all.dq.view()), "126") << scheme;
    EXPECT_EQ(equal_heads(some.dk.view(), all.dk.view()), "23") << scheme;
    EXPECT_EQ(equal_heads(some.dv.view(), all.dv.view()), "23") << scheme;
  }
}

TEST(GatherResults, EveryRankLearnsWhichHeads) {
  const CheckedHeads heads{{{0, 2}, {5, 8}}, {}};
  const bool is_root = world().control().rank() == 0;
  EXPECT_EQ(broadcast(world().control(), is_root ? heads : CheckedHeads{}), heads);
}

}  // namespace
}  // namespace longca::testing
