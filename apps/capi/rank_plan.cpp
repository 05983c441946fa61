// Rank plans of longca.h: a rank's part of an attention.

#include "rank_plan.h"

#include <chrono>
#include <cstddef>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "answer.h"
#include "attention/api/registry.h"
#include "core/memory.h"
#include "parallel/executor/step_math.h"
#include "parallel/transport/rank_exchange.h"
#include "problems.h"
#include "transport.h"

using namespace longca;
using namespace longca::capi;

namespace longca::capi {
namespace {

/// The partition's problem with the shape of an attention.
ParallelProblem parallel_problem(const longca_partition& p, const longca_problem& given) {
  ParallelProblem parallel = p.parallel;
  parallel.problem = to_problem(given, p.parallel.mask);
  if (parallel.problem.sink) {
    throw Refusal(LONGCA_UNSUPPORTED, "no scheme of context parallelism takes sinks: sink = 1");
  }
  check_supported(p, parallel);
  return parallel;
}

}  // namespace
}  // namespace longca::capi

longca_rank_plan::longca_rank_plan(const longca_partition& partition, const longca_problem& given,
                                   std::unique_ptr<Communicator> by,
                                   std::shared_ptr<GpuGroup> group)
    : problem(parallel_problem(partition, given).problem),
      plan(partition.scheme->plan(parallel_problem(partition, given), partition.rank)),
      shard(shard_of(plan)),
      gpus(std::move(group)),
      communicator(std::move(by)),
      tensors(allocate()),
      computer(find_kernel(given, problem, partition.parallel.mask), problem),
      executor(plan, problem, tensors, *communicator, computer),
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
  while (!idle()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

/// The rank's tensors in one allocation, since each is collective.
RankTensors longca_rank_plan::allocate() {
  RankTensors t;
  std::vector<std::pair<TensorView*, int>> all{{&t.q, problem.heads_q},
                                               {&t.o, problem.heads_q},
                                               {&t.k, problem.heads_k},
                                               {&t.v, problem.heads_k}};
  if (problem.backward) {
    for (TensorView* x : {&t.dout, &t.dq}) all.emplace_back(x, problem.heads_q);
    for (TensorView* x : {&t.dk, &t.dv}) all.emplace_back(x, problem.heads_k);
  }
  const std::int64_t dim = problem.head_dim;
  const auto bytes_of = [&](int heads) {
    return aligned(shard.rows * heads * dim * size_of(problem.dtype));
  };
  std::int64_t bytes = aligned(4 * shard.rows * problem.heads_q);
  for (const auto& [view, heads] : all) bytes += bytes_of(heads);
  auto* at = static_cast<std::byte*>(communicator->allocate(bytes));
  for (const auto& [view, heads] : all) {
    *view = {at, problem.dtype, shard.rows, heads, dim, heads * dim, dim};
    at += bytes_of(heads);
  }
  t.lse = {reinterpret_cast<float*>(at), problem.heads_q, shard.rows, shard.rows};
  return t;
}

namespace longca::capi {
namespace {

/// Copies between the caller's memory and the plan's, queued together.
class Mover {
 public:
  explicit Mover(const longca_rank_plan& plan) : plan_(plan), local_(plan.problem) {
    local_.tokens_q = local_.tokens_k = plan.rows();
  }
  /// The plan's tensors have further rows, as padding.
  void in(const longca_tensor& from, const char* name, const TensorView& to, bool of_queries) {
    const TensorView view = view_of(from, name, local_, of_queries);
    if (view.tokens > 0) copies_.push_back({view, token_rows(to, {0, view.tokens})});
  }
  void out(const TensorView& from, const longca_tensor& to, const char* name, bool of_queries) {
    const TensorView view = view_of(to, name, local_, of_queries);
    if (view.tokens > 0) copies_.push_back({token_rows(from, {0, view.tokens}), view});
  }
  /// What the plan keeps for the backward pass, one piece after the other.
  void save(void* state) {
    for_all_kept(state, [&](void* there, void* here, std::int64_t bytes) {
      copies_.push_back({bytes_at(here, bytes), bytes_at(there, bytes)});
    });
  }
  void restore(void* state) {
    for_all_kept(state, [&](void* there, void* here, std::int64_t bytes) {
      copies_.push_back({bytes_at(there, bytes), bytes_at(here, bytes)});
    });
  }
  void queue(Stream stream) {
    step_math(local_.device).copy_all(copies_, stream);
    copies_.clear();
  }

 private:
  template <typename Visit>
  void for_all_kept(void* state, const Visit& visit) const {
    auto* there = static_cast<std::byte*>(state);
    plan_.for_all_kept([&](void* here, std::int64_t bytes) {
      if (bytes > 0) visit(there, here, bytes);
      there += bytes;
    });
  }
  /// As one row of 2-byte elements: all that plans keep are whole ones.
  static TensorView bytes_at(void* data, std::int64_t bytes) {
    const std::int64_t elements = bytes / 2;
    return {data, DType::bfloat16, 1, 1, elements, elements, elements};
  }

  const longca_rank_plan& plan_;
  Problem local_;
  std::vector<TensorCopy> copies_;
};

/// Begins a call, after those that came before on any stream.
void begin(longca_rank_plan& p, Mover& move, Stream stream) {
  if (p.gpus) p.gpus->end_idle_plans();
  p.mark->hold_up(stream);
  move.queue(stream);
}

void run_forward(longca_rank_plan& p, const longca_forward_arguments& a, void* state) {
  Mover move(p);
  move.in(a.q, "q", p.tensors.q, true);
  move.in(a.k, "k", p.tensors.k, false);
  move.in(a.v, "v", p.tensors.v, false);
  begin(p, move, a.stream);
  p.executor.forward(a.stream);
  move.out(p.tensors.o, a.o, "o", true);
  if (state != nullptr) move.save(state);
  move.queue(a.stream);
  p.mark->record(a.stream);
}

void run_backward(longca_rank_plan& p, const longca_backward_arguments& a, void* state) {
  if (!p.problem.backward) throw_input_error("the plan was made with problem.backward = 0");
  Mover move(p);
  move.in(a.dout, "dout", p.tensors.dout, true);
  move.in(a.q, "q", p.tensors.q, true);
  move.in(a.k, "k", p.tensors.k, false);
  move.in(a.v, "v", p.tensors.v, false);
  move.in(a.o, "o", p.tensors.o, true);
  move.restore(state);
  begin(p, move, a.stream);
  p.executor.backward(a.stream);
  move.out(p.tensors.dq, a.dq, "dq", true);
  move.out(p.tensors.dk, a.dk, "dk", false);
  move.out(p.tensors.dv, a.dv, "dv", false);
  move.queue(a.stream);
  p.mark->record(a.stream);
}

longca_problem known_problem(const longca_problem* problem) {
  constexpr longca_problem kDefaults = LONGCA_PROBLEM_INIT;
  return known_part(required(problem, "problem"), kDefaults, "longca_problem");
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
    if (t.start == nullptr || t.finish == nullptr) {
      throw_input_error("the transport lacks start or finish");
    }
    const longca_partition& p = required(partition, "partition");
    if (given.device != LONGCA_CPU) {
      throw_input_error(
          "device = {}: of ranks on GPUs the plan is made by longca_rank_plan_create_on_gpus",
          given.device);
    }
    auto by = std::make_unique<CallersCommunicator>(t, p.rank, p.parallel.ranks);
    required(plan, "plan") = new longca_rank_plan(p, given, std::move(by), nullptr);
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
    if (p.rank != gpus->control().rank() || p.parallel.ranks != gpus->control().size()) {
      throw_input_error("the partition is of rank {} of {}, the group of rank {} of {}", p.rank,
                        p.parallel.ranks, gpus->control().rank(), gpus->control().size());
    }
    longca_rank_plan*& result = required(plan, "plan");
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
    const Support all = agree(gpus->control(), mine);
    if (failure) std::rethrow_exception(failure);
    if (!all.ok()) throw Refusal(LONGCA_FAILED, all.reason);
    result = made.release();
  });
}

int64_t longca_rank_plan_state_bytes(const longca_rank_plan* plan) {
  int64_t sum = 0;
  plan->for_all_kept([&](const void*, std::int64_t bytes) { sum += bytes; });
  return sum;
}

void longca_rank_plan_release(longca_rank_plan* plan) {
  if (plan == nullptr) return;
  std::unique_ptr<longca_rank_plan> ended(plan);
  const std::shared_ptr<GpuGroup> gpus = plan->gpus;
  if (gpus) gpus->release(std::move(ended));
}

longca_status longca_rank_forward(longca_rank_plan* plan, const longca_forward_arguments* arguments,
                                  void* state) {
  return answer([&] {
    longca_rank_plan& p = required(plan, "plan");
    const std::scoped_lock lock(p.calls);
    run_forward(p, required(arguments, "arguments"), state);
  });
}

longca_status longca_rank_backward(longca_rank_plan* plan,
                                   const longca_backward_arguments* arguments, const void* state) {
  return answer([&] {
    longca_rank_plan& p = required(plan, "plan");
    if (state == nullptr) throw_input_error("state is NULL");
    const std::scoped_lock lock(p.calls);
    run_backward(p, required(arguments, "arguments"), const_cast<void*>(state));
  });
}

}  // extern "C"
