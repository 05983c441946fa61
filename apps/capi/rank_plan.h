#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "callers_tensors.h"
#include "gpu_group.h"
#include "keep_released.h"
#include "longca.h"
#include "parallel/executor/executor.h"
#include "parallel/executor/kernel_computer.h"
#include "parallel/executor/lanes.h"
#include "parallel/plan/rank_shard.h"
#include "partitions.h"

struct longca_gpu_group {
  std::shared_ptr<longca::capi::GpuGroup> group;
};

/// What a rank needs to run its part again and again.
struct longca_rank_plan {
  /// `gpus`: null on the CPU.
  longca_rank_plan(const longca_partition& partition, const longca_problem& given,
                   std::unique_ptr<longca::Communicator> communicator,
                   std::shared_ptr<longca::capi::GpuGroup> gpus);

  /// Whether the device is done with all calls. Of one that failed the exchanges may still run,
  /// which `mark` does not follow: such a plan keeps its memory until its group ends.
  bool idle() const noexcept { return failure.empty() && longca::capi::has_ended(mark.get()); }
  /// Waits for what `mark` follows.
  void wait() const;

  /// Calls visit(data, bytes) for what the backward pass needs of the forward pass besides o.
  template <typename Visit>
  void for_all_kept(const Visit& visit) const {
    using namespace longca;
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const PlanBuffer& buffer = plan.buffers[i];
      const bool is_lse = buffer.role == TensorRole::lse;
      if (!buffer.kept && !(buffer.external && is_lse)) continue;
      const Region whole = plan.whole(static_cast<int>(i));
      const Placement at{buffer.role, whole, {}, {}};
      void* data = is_lse ? executor.lse_result(at).data : executor.result(at).data;
      visit(data, region_bytes(plan, whole, problem.head_dim, problem.dtype));
    }
  }

  longca::Problem problem;  ///< of all ranks
  longca::RankPlan plan;
  longca::RankShard shard;
  std::shared_ptr<longca::capi::GpuGroup> gpus;
  std::unique_ptr<longca::Communicator> communicator;
  longca::capi::CallersTensors tensors;
  longca::KernelComputer computer;
  longca::Executor executor;
  std::unique_ptr<longca::StreamMark> mark;  ///< the end of the last call
  /// Why a call ended amid its pass; empty: none did. What the ranks exchange is then not what the
  /// plan says, and no other call may follow.
  std::string failure;
  std::mutex calls;
};
