// Rank plans of longca.h: a rank's part of an attention.

#include "rank_plan.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

#include "answer.h"
#include "attention/api/registry.h"
#include "parallel/transport/rank_exchange.h"
#include "problems.h"
#include "transport.h"

using namespace longca;
using namespace longca::capi;

namespace longca::capi {
namespace {

/// Of `state`, in bytes, as longca.h says.
constexpr std::size_t kStateAlignment = 4;

/// The partition's problem with the shape of an attention. Its device stays: the partition goes by
/// it.
ParallelProblem parallel_problem(const longca_partition& p, const longca_problem& given) {
  ParallelProblem parallel = p.parallel;
  parallel.problem = to_problem(given, p.parallel.mask);
  parallel.problem.device = p.parallel.problem.device;
  check_supported(p, parallel);
  return parallel;
}

}  // namespace
}  // namespace longca::capi

longca_rank_plan::longca_rank_plan(const longca_partition& partition, const longca_problem& given,
                                   std::unique_ptr<Communicator> by,
                                   std::shared_ptr<GpuGroup> group)
    : problem(to_problem(given, partition.parallel.mask)),
      plan(partition.scheme->plan(parallel_problem(partition, given), partition.rank)),
      shard(shard_of(plan)),
      gpus(std::move(group)),
      communicator(std::move(by)),
      tensors(plan, problem, shard.count(), shard.rows, *communicator),
      computer(find_kernel(given, problem, partition.parallel.mask), problem, Merging::automatic,
               gpus ? &tensors.map() : nullptr),
      executor(plan, problem, tensors.rank_tensors(), *communicator, computer),
      mark(make_stream_mark(problem.device)) {
  if (shard.tokens != partition.tokens) {
    throw_input_error(
        "heads {}:{} of dimension {} share tokens otherwise than the {}:{} of {} that the "
        "partition was made for: make it with the heads of the attention",
        problem.heads_q, problem.heads_k, problem.head_dim, partition.parallel.problem.heads_q,
        partition.parallel.problem.heads_k, partition.parallel.problem.head_dim);
  }
  if (!executor.support().ok()) throw Refusal(LONGCA_UNSUPPORTED, executor.support().reason);
  // What a plan uploads must be there whatever stream calls it.
  Device::get(problem.device).synchronize();
}

void longca_rank_plan::wait() const {
  while (!mark->is_captured() && !has_ended(mark.get()))
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

namespace longca::capi {
namespace {

/// Runs a call whose tensors are named: after those that came before on any stream, what is copied
/// in, pass(), and what is copied out. A call that ends amid it is the plan's last.
template <typename Pass>
void run_call(longca_rank_plan& p, Stream stream, const Pass& pass) {
  if (p.gpus) p.gpus->end_idle_plans();
  p.mark->hold_up(stream);
  const EndOfCall end(p.mark.get(), stream);
  try {
    p.tensors.queue_in(stream);
    pass();
    p.tensors.queue_out(stream);
  } catch (const std::exception& error) {
    p.failure = *error.what() != '\0' ? error.what() : "no reason";
    throw;
  }
}

void refuse_after_failure(const longca_rank_plan& p) {
  if (p.failure.empty()) return;
  throw std::runtime_error(fmt::format(
      "a call of this rank plan failed amid its messages, and ranks may be at different "
      "ones: make another, in Python another Partition, on all ranks ({})",
      p.failure));
}

void run_forward(longca_rank_plan& p, const longca_forward_arguments& a, void* state) {
  p.tensors.begin_call();
  p.tensors.take_in(TensorRole::q, a.q);
  p.tensors.take_in(TensorRole::k, a.k);
  p.tensors.take_in(TensorRole::v, a.v);
  p.tensors.give_out(TensorRole::o, a.o);
  if (p.problem.sink) p.tensors.take_in_sinks(required(a.sink, "sink"));
  auto* to = static_cast<std::byte*>(state);
  if (state != nullptr) {
    p.for_all_kept([&](void* from, std::int64_t bytes) {
      p.tensors.add_out(from, to, bytes);
      to += bytes;
    });
  }
  run_call(p, a.stream, [&] { p.executor.forward(a.stream); });
}

void run_backward(longca_rank_plan& p, const longca_backward_arguments& a, void* state) {
  if (!p.problem.backward) throw_input_error("the plan was made with problem.backward = 0");
  p.tensors.begin_call();
  p.tensors.take_in(TensorRole::dout, a.dout);
  p.tensors.take_in(TensorRole::q, a.q);
  p.tensors.take_in(TensorRole::k, a.k);
  p.tensors.take_in(TensorRole::v, a.v);
  p.tensors.take_in(TensorRole::o, a.o);
  p.tensors.give_out(TensorRole::dq, a.dq);
  p.tensors.give_out(TensorRole::dk, a.dk);
  p.tensors.give_out(TensorRole::dv, a.dv);
  if (p.problem.sink) {
    p.tensors.take_in_sinks(required(a.sink, "sink"));
    p.tensors.give_out_sink_gradients(required(a.dsink, "dsink"));
  }
  auto* from = static_cast<std::byte*>(state);
  p.for_all_kept([&](void* to, std::int64_t bytes) {
    p.tensors.add_in(from, to, bytes);
    from += bytes;
  });
  run_call(p, a.stream, [&] { p.executor.backward(a.stream); });
}

}  // namespace
}  // namespace longca::capi

extern "C" {

longca_status longca_rank_plan_create(const longca_partition* partition,
                                      const longca_problem* problem,
                                      const longca_transport* transport, longca_rank_plan** plan) {
  return answer([&] {
    const longca_problem given = known_problem(problem);
    const longca_transport& t = required(transport, "transport");
    check_transport(t);
    const longca_partition& p = required(partition, "partition");
    if (given.device != LONGCA_CPU) {
      throw_input_error(
          "device = {}: of ranks on GPUs the plan is made by longca_rank_plan_create_on_gpus",
          given.device);
    }
    give(plan, "plan", [&] {
      auto by = std::make_unique<CallersCommunicator>(t, p.rank, p.parallel.ranks);
      return std::make_unique<longca_rank_plan>(p, given, std::move(by), nullptr);
    });
  });
}

longca_status longca_rank_plan_create_on_gpus(const longca_partition* partition,
                                              const longca_problem* problem,
                                              longca_gpu_group* group, longca_rank_plan** plan) {
  return answer([&] {
    const longca_problem given = known_problem(problem);
    const longca_partition& p = required(partition, "partition");
    const std::shared_ptr<GpuGroup> gpus = required(group, "group").group;
    if (given.device != LONGCA_CUDA) {
      throw_input_error("device = {}: LONGCA_CUDA is meant", given.device);
    }
    if (p.rank != gpus->hosts().rank() || p.parallel.ranks != gpus->hosts().size()) {
      throw_input_error("the partition is of rank {} of {}, the group of rank {} of {}", p.rank,
                        p.parallel.ranks, gpus->hosts().rank(), gpus->hosts().size());
    }
    longca_rank_plan*& result = required(plan, "plan");
    const DeviceScope scope(DeviceKind::cuda);
    gpus->end_idle_plans();
    std::unique_ptr<longca_rank_plan> made;
    std::exception_ptr failure;
    Support mine;
    try {
      made = std::make_unique<longca_rank_plan>(p, given, gpus->make_communicator(), gpus);
    } catch (const std::exception& error) {
      mine = {StatusCode::crash, error.what()};
      failure = std::current_exception();
    }
    // None goes on without the others: their calls would wait for it.
    const Support all = agree(gpus->hosts(), mine);
    if (failure) std::rethrow_exception(failure);
    if (!all.ok()) throw Refusal(LONGCA_FAILED, all.reason);
    result = made.release();
  });
}

int64_t longca_rank_plan_state_bytes(const longca_rank_plan* plan) {
  if (plan == nullptr) return 0;
  return guarded(int64_t{0}, [&] {
    int64_t sum = 0;
    plan->for_all_kept([&](const void*, std::int64_t bytes) { sum += bytes; });
    return sum;
  });
}

void longca_rank_plan_release(longca_rank_plan* plan) {
  if (plan == nullptr) return;
  guarded(0, [&] {
    std::unique_ptr<longca_rank_plan> ended(plan);
    const std::shared_ptr<GpuGroup> gpus = plan->gpus;
    if (gpus) gpus->release(std::move(ended));
    return 0;
  });
}

longca_status longca_rank_forward(longca_rank_plan* plan, const longca_forward_arguments* arguments,
                                  void* state) {
  return answer([&] {
    longca_rank_plan& p = required(plan, "plan");
    const std::scoped_lock lock(p.calls);
    const DeviceScope scope(p.problem.device);
    require_aligned(state, kStateAlignment, "state");
    refuse_after_failure(p);
    run_forward(p, required(arguments, "arguments"), state);
  });
}

longca_status longca_rank_backward(longca_rank_plan* plan,
                                   const longca_backward_arguments* arguments, const void* state) {
  return answer([&] {
    longca_rank_plan& p = required(plan, "plan");
    if (state == nullptr) throw_input_error("state is NULL");
    require_aligned(state, kStateAlignment, "state");
    const std::scoped_lock lock(p.calls);
    const DeviceScope scope(p.problem.device);
    refuse_after_failure(p);
    run_backward(p, required(arguments, "arguments"), const_cast<void*>(state));
  });
}

}  // extern "C"
