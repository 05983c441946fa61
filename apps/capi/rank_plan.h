#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "callers_tensors.h"
#include "gpu_group.h"
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

  /// Whether the device is done with all calls.
  bool idle() const { return !mark->is_captured() && mark->reached(); }
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
  std::mutex calls;
};
