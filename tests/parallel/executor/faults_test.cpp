// Faults of execution, planted: the verifier finds each of them.
#include "parallel/executor/faults.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "attention/cpu/kernels.h"
#include "parallel/executor/rank_run.h"

namespace longca::test {
namespace {

/// The fault on one rank, the others as they are.
template <typename Fault>
WrapComputer only_on(int faulty) {
  return [faulty](std::unique_ptr<StepComputer> inner, int rank) -> std::unique_ptr<StepComputer> {
    if (rank != faulty) return inner;
    return std::make_unique<Fault>(std::move(inner));
  };
}

class Throwing final : public ForwardingComputer {
 public:
  using ForwardingComputer::ForwardingComputer;
  void run(bool, int, Stream) override { throw std::runtime_error("the step failed"); }
};

class PlantedFaults : public testing::Test {
 protected:
  Verdict forward_verdict(const RunOptions& options) const {
    return check_forward(reference_, run_ranks(scheme_, problem_, inputs_, options).outputs);
  }

  const std::unique_ptr<Kernel> kernel_ = make_flash_cpu();
  const ParallelProblem problem_{
      .problem = square_problem(256, 8, 4, 16, DType::bfloat16),
      .mask = Mask::from_slices(256, 256, {{0, 256, 0, 256, MaskSliceType::causal}}),
      .lengths = {},
      .ranks = 4};
  const Inputs inputs_ = make_inputs(problem_.problem, 1);
  const Reference reference_{problem_.problem, problem_.mask, inputs_, {.seconds = 60}, 1};
  const Scheme& scheme_ = find_scheme("ring_p2p");
};

TEST_F(PlantedFaults, NoneIsFoundWhereNoneIs) {
  const Verdict verdict = forward_verdict({.kernel = kernel_.get()});
  EXPECT_TRUE(verdict.ok) << verdict.reason;
}

TEST_F(PlantedFaults, AMergeWithoutTheLse) {
  // The last rank sees the keys of all others.
  const Verdict verdict =
      forward_verdict({.kernel = kernel_.get(), .wrap_computer = only_on<LseDropped>(3)});
  EXPECT_FALSE(verdict.ok);
}

TEST_F(PlantedFaults, AChunkInTheWrongPlace) {
  std::atomic<int> swapped = 0;
  const Verdict verdict =
      forward_verdict({.kernel = kernel_.get(), .wrap_communicator = [&](Communicator& inner) {
                         return std::make_unique<ChunksSwapped>(inner, [&] { ++swapped; });
                       }});
  EXPECT_EQ(swapped, 4);
  EXPECT_FALSE(verdict.ok);
}

TEST_F(PlantedFaults, ARankThatThrowsEndsTheOthers) {
  EXPECT_THROW(forward_verdict({.kernel = kernel_.get(), .wrap_computer = only_on<Throwing>(1)}),
               std::runtime_error);
}

}  // namespace
}  // namespace longca::test
