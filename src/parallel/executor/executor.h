#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention/api/kernel.h"
#include "core/status.h"
#include "parallel/executor/lane_times.h"
#include "parallel/plan/plan.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// The caller's tensors of one rank: its shard, [rows of the shard, all heads, dim], in memory of
/// the problem's device. What a pass does not need may be empty.
struct RankTensors {
  TensorView q, k, v, dout;
  TensorView o;
  LseView lse;
  TensorView dq, dk, dv;
};

/// The tensors and lse arrays of an op's regions, in the order of its members (Attend: q, k, v, o |
/// lse; AttendBackward: dout, q, k, v, o, dq, dk, dv | lse; Total: to, its parts; others: from, to
/// or the one region, as a tensor or as an lse).
struct OpViews {
  std::vector<TensorView> tensors;
  std::vector<LseView> lses;
};

/// What the steps of a plan are computed with. Everything is queued on `stream`; on the CPU a call
/// returns when its work is done. The executor knows nothing of kernels, so that a modelled
/// computer can stand here.
class StepComputer {
 public:
  virtual ~StepComputer() = default;
  /// Whether the i-th op of `plan.forward` or `plan.backward` can be computed, and notes what it
  /// needs. Once per op that is no exchange, in order, the forward pass first. A refusal names the
  /// kernel's reason alone.
  virtual Support prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) = 0;
  /// Makes all that was asked for, plans of kernels and workspace: after the last `prepare`, before
  /// the first `run`.
  virtual void ready() = 0;
  virtual void run(bool backward, int op, Stream stream) = 0;
  /// Of an AttendBackward whose dout, o and lse will be there long before its keys: after the last
  /// `prepare`, before `ready`.
  virtual void expect_early(int /*op*/) {}
  /// After `ready`: whether each `run` of the op is to be behind a `run_early`.
  virtual bool has_early(int /*op*/) const { return false; }
  /// Queues what of the op of the backward pass can be done without keys; `run` leaves it out.
  virtual void run_early(int /*op*/, Stream /*stream*/) {}
  virtual std::int64_t workspace_bytes() const = 0;
  virtual std::map<std::string, std::string> notes() const = 0;
};

/// The lanes of a device: work that runs beside each other and waits for each other. On the CPU
/// there is one thread and nothing to wait for.
class DeviceLanes {
 public:
  virtual ~DeviceLanes() = default;
  /// A pass begins after, and ends before, what else is queued on `stream`, which is the compute
  /// lane.
  virtual void begin(Stream stream) = 0;
  virtual void end() = 0;
  virtual Stream stream(Lane lane) = 0;
  /// Marks the end of op `op`, just queued on `lane`; makes what is queued on `lane` from now on
  /// wait for it.
  virtual void mark(int op, Lane lane) = 0;
  virtual void wait(int op, Lane lane) = 0;
};
std::unique_ptr<DeviceLanes> make_device_lanes(DeviceKind device);

/// Runs the plan of one rank. Buffers are allocated once, here.
class Executor {
 public:
  /// `tensors` lie in memory of `communicator.allocate`. Everything outlives this object.
  /// Collective: every rank makes one for its own plan.
  Executor(const RankPlan& plan, const Problem& problem, const RankTensors& tensors,
           Communicator& communicator, StepComputer& computer);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// What the computer said to its ops: ok, or the first refusal, with the step named. Nothing may
  /// be run then.
  const Support& support() const;

  /// Asynchronous on `stream` on a GPU. `communicate` false leaves all exchanges out: the time of
  /// the computing alone, with results that mean nothing.
  /// `times`: notes when each op ran.
  void forward(Stream stream, bool communicate = true, LaneTimes* times = nullptr);
  void backward(Stream stream, bool communicate = true, LaneTimes* times = nullptr);

  /// Where a result lies after a pass.
  TensorView result(const Placement& placement) const;
  LseView lse_result(const Placement& placement) const;
  /// Bytes of the plan's own buffers on this rank.
  std::int64_t buffer_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
