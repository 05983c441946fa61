#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention/api/kernel.h"
#include "core/status.h"
#include "parallel/executor/lanes.h"
#include "parallel/plan/plan.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// The caller's tensors of one rank, [rows of its shard, all heads, dim], in memory of the
/// problem's device. Tensors that a pass does not need may be empty.
struct RankTensors {
  TensorView q, k, v, dout;
  TensorView o;
  LseView lse;
  TensorView dq, dk, dv;
  /// [heads_q] float32, of a problem with sinks: the logits, and the rank's part of their gradient.
  const float* sink = nullptr;
  float* dsink = nullptr;
};

/// Views of an op's regions, in the order of its members, tensors | lse arrays. Attend: q, k, v, o
/// | lse. AttendBackward: dout, q, k, v, o, dq, dk, dv | lse. Total: to, its parts. JoinSinks: o |
/// lse. SinkGradients: dout, o | lse. Others: from, to, or their one region; all of them either
/// tensors or lse arrays.
struct OpViews {
  std::vector<TensorView> tensors;
  std::vector<LseView> lses;
  /// From the op's first head on, where the op takes sinks or writes their gradient; else null.
  const float* sink = nullptr;
  float* dsink = nullptr;
};

/// Computes the ops of a plan, queued on `stream`; on the CPU calls return when their work is done.
/// The executor knows no kernels, so that a model of one can take this place.
class StepComputer {
 public:
  virtual ~StepComputer() = default;
  /// Says whether op `op` of `plan.forward` or `plan.backward` can be computed, and registers what
  /// it needs. Called once for each op that is not an exchange, in order, forward pass first. A
  /// refusal has the kernel's reason alone; the executor adds the step.
  virtual Support prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) = 0;
  /// Makes the kernels' plans and the workspace: after the last `prepare`, before the first `run`.
  virtual void ready() = 0;
  virtual void run(bool backward, int op, Stream stream) = 0;
  /// Announces an AttendBackward whose dout, o and lse are complete before its keys arrive. Called
  /// after the last `prepare`, before `ready`.
  virtual void expect_early(int /*op*/) {}
  /// After `ready`: whether each `run` of the op must follow a `run_early`.
  virtual bool has_early(int /*op*/) const { return false; }
  /// Queues the part of a backward op that needs no keys; `run` then skips it.
  virtual void run_early(int /*op*/, Stream /*stream*/) {}
  virtual std::int64_t workspace_bytes() const = 0;
  virtual std::map<std::string, std::string> notes() const = 0;
};

/// Runs the plan of one rank. Allocates all buffers at construction.
class Executor {
 public:
  /// Collective: every rank makes one for its own plan. `tensors` lie in memory of
  /// `communicator.allocate`; all arguments must outlive this object.
  Executor(const RankPlan& plan, const Problem& problem, const RankTensors& tensors,
           Communicator& communicator, StepComputer& computer);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Ok, or the computer's first refusal, naming its step; then no pass may run.
  const Support& support() const;

  /// Runs a pass; on a GPU asynchronously on `stream`. Without `communicate` all exchanges are
  /// skipped, to time the computing alone: results are then meaningless. `times`, if given, records
  /// when each op ran.
  void forward(Stream stream, bool communicate = true, LaneTimes* times = nullptr);
  void backward(Stream stream, bool communicate = true, LaneTimes* times = nullptr);

  /// The view of a result after a pass.
  TensorView result(const Placement& placement) const;
  LseView lse_result(const Placement& placement) const;
  /// Bytes of the plan's own buffers on this rank, without the caller's tensors.
  std::int64_t buffer_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
