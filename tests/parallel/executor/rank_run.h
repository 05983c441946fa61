#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/inputs/inputs.h"
#include "attention/reference/verifier.h"
#include "attention/solved.h"
#include "parallel/executor/executor.h"
#include "parallel/executor/kernel_computer.h"
#include "parallel/schemes/scheme.h"

namespace longca::test {

/// A computer or communicator around another.
using WrapComputer =
    std::function<std::unique_ptr<StepComputer>(std::unique_ptr<StepComputer>, int rank)>;
/// Calls body(communicator of the rank) for every rank, all at once.
using Launch = std::function<void(int ranks, const std::function<void(Communicator&)>& body)>;
using WrapCommunicator = std::function<std::unique_ptr<Communicator>(Communicator&)>;

/// How a problem is run over ranks.
struct RunOptions {
  const Kernel* kernel = nullptr;
  WrapComputer wrap_computer = {};          ///< none: the kernel's own computer
  WrapCommunicator wrap_communicator = {};  ///< none: that of the threads
  Launch launch = {};                       ///< none: ThreadRanks
  Merging merging = Merging::automatic;
  bool communicate = true;
  /// The caller's tensors are somewhere else in each repetition, where an AddressMap says.
  bool moves = false;
  int repetitions = 1;
};

/// What the ranks of a problem have computed, put together.
struct RankRun {
  explicit RankRun(const Problem& problem) : outputs(problem) {}

  Outputs outputs;
  /// Of the ranks: what the computer said; bytes sent in one repetition of each pass, by the
  /// communicator and by the plan.
  std::vector<Support> supports;
  std::vector<std::int64_t> forward_bytes, forward_plan_bytes;
  std::vector<std::int64_t> backward_bytes, backward_plan_bytes;
  std::vector<std::int64_t> workspace_bytes;
};

/// Both passes of the plans of `scheme` on the problem's device; inputs and outputs are the host's.
/// What is not written of the outputs stays NaN. A result that two ranks deliver fails the test.
RankRun run_ranks(const Scheme& scheme, const ParallelProblem& problem, const Inputs& inputs,
                  const RunOptions& options);
/// The same of plans made otherwise.
RankRun run_ranks(const std::function<RankPlan(int rank)>& plan_of, const ParallelProblem& problem,
                  const Inputs& inputs, const RunOptions& options);

}  // namespace longca::test
