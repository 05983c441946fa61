// Context parallelism of longca.h: who owns which tokens, and a rank's part of an attention.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "answer.h"
#include "attention/api/registry.h"
#include "handles.h"
#include "longca.h"
#include "parallel/executor/executor.h"
#include "parallel/executor/kernel_computer.h"
#include "parallel/executor/step_math.h"
#include "parallel/plan/rank_shard.h"
#include "parallel/schemes/scheme.h"
#include "problems.h"
#include "transport.h"

using namespace longca;
using namespace longca::capi;

struct longca_partition {
  ParallelProblem parallel;  ///< with the shape that the partition was made for
  const Scheme* scheme;
  int rank;
  std::vector<Range> tokens;  ///< global numbers, ascending
};

namespace longca::capi {
namespace {

longca_problem shape_of(const longca_partition_options& o) {
  longca_problem shape = LONGCA_PROBLEM_INIT;
  shape.heads_q = o.heads_q;
  shape.heads_k = o.heads_k;
  shape.head_dim = o.head_dim;
  return shape;
}

void check_supported(const longca_partition& p, const ParallelProblem& parallel) {
  if (const Support s = p.scheme->supports(parallel); !s.ok()) {
    throw Refusal(LONGCA_UNSUPPORTED, fmt::format("{}: {}", p.scheme->name(), s.reason));
  }
}

std::unique_ptr<longca_partition> make_partition(const longca_partition_options& o,
                                                 const longca_mask& mask) {
  constexpr std::int32_t kMaxRanks = 1 << 16;
  if (o.ranks < 1 || o.ranks > kMaxRanks || o.rank < 0 || o.rank >= o.ranks) {
    throw_input_error("rank = {} of {} ranks: 0 to ranks − 1, at most {} ranks", o.rank, o.ranks,
                      kMaxRanks);
  }
  if (o.ranks_per_node < 1) throw_input_error("ranks_per_node = {}: at least 1", o.ranks_per_node);
  if (o.factor < 0) throw_input_error("factor = {}: at least 0", o.factor);
  if (mask.mask.q_tokens() != mask.mask.k_tokens()) {
    throw_input_error("the mask has {} queries and {} keys: ranks share as many of both",
                      mask.mask.q_tokens(), mask.mask.k_tokens());
  }
  const Scheme& scheme = find_scheme(o.scheme == nullptr ? "magi" : o.scheme);
  std::unique_ptr<longca_partition> p(new longca_partition{
      {.problem = to_problem(shape_of(o), mask.mask),
       .mask = mask.mask,
       .lengths = mask.documents,
       .ranks = o.ranks,
       .ranks_per_node = o.ranks_per_node,
       .shard = o.shard == nullptr ? scheme.best_shard() : parse_shard_kind(o.shard)},
      &scheme,
      o.rank,
      {}});
  // Empty documents are none to a sharding.
  std::erase(p->parallel.lengths, 0);
  if (scheme.has_factor()) {
    p->parallel.factor = o.factor != 0 ? o.factor : scheme.factor(p->parallel);
  }
  check_supported(*p, p->parallel);
  p->tokens = shard_of(scheme.plan(p->parallel, o.rank)).tokens;
  return p;
}

/// The partition's problem with the shape of an attention.
ParallelProblem parallel_problem(const longca_partition& p, const longca_problem& given) {
  ParallelProblem parallel = p.parallel;
  parallel.problem = to_problem(given, p.parallel.mask);
  if (parallel.problem.sink) {
    throw Refusal(LONGCA_UNSUPPORTED, "no scheme of context parallelism takes sinks: sink = 1");
  }
  if (parallel.problem.device != DeviceKind::cpu) {
    throw Refusal(LONGCA_UNSUPPORTED, "ranks of this library compute on the CPU, not on a GPU yet");
  }
  check_supported(p, parallel);
  return parallel;
}

}  // namespace
}  // namespace longca::capi

/// What a rank needs to run its part again and again.
struct longca_rank_plan {
  longca_rank_plan(const longca_partition& partition, const longca_problem& given,
                   const longca_transport& transport)
      : problem(parallel_problem(partition, given).problem),
        plan(partition.scheme->plan(parallel_problem(partition, given), partition.rank)),
        shard(shard_of(plan)),
        communicator(transport, partition.rank, partition.parallel.ranks),
        tensors(allocate()),
        computer(find_kernel(given, problem, partition.parallel.mask), problem),
        executor(plan, problem, tensors, communicator, computer) {
    if (shard.tokens != partition.tokens) {
      throw_input_error(
          "heads {}:{} of dimension {} share tokens otherwise than the {}:{} of {} that the "
          "partition was made for: make it with the heads of the attention",
          problem.heads_q, problem.heads_k, problem.head_dim, partition.parallel.problem.heads_q,
          partition.parallel.problem.heads_k, partition.parallel.problem.head_dim);
    }
    if (!executor.support().ok()) throw Refusal(LONGCA_UNSUPPORTED, executor.support().reason);
  }

  std::int64_t rows() const { return shard.count(); }

  /// Calls visit(data, bytes) for what the backward pass needs of the forward pass besides o.
  template <typename Visit>
  void for_all_kept(const Visit& visit) const {
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

  Problem problem;  ///< of all ranks
  RankPlan plan;
  RankShard shard;
  CallersCommunicator communicator;
  RankTensors tensors;  ///< in memory that messages may use; the caller's are copied in and out
  KernelComputer computer;
  Executor executor;
  std::mutex calls;

 private:
  TensorView allocate(int heads) {
    const std::int64_t dim = problem.head_dim;
    void* data = communicator.allocate(shard.rows * heads * dim * size_of(problem.dtype));
    return {data, problem.dtype, shard.rows, heads, dim, heads * dim, dim};
  }
  RankTensors allocate() {
    RankTensors t;
    for (TensorView* x : {&t.q, &t.o}) *x = allocate(problem.heads_q);
    for (TensorView* x : {&t.k, &t.v}) *x = allocate(problem.heads_k);
    if (problem.backward) {
      for (TensorView* x : {&t.dout, &t.dq}) *x = allocate(problem.heads_q);
      for (TensorView* x : {&t.dk, &t.dv}) *x = allocate(problem.heads_k);
    }
    auto* lse = communicator.allocate(4 * shard.rows * problem.heads_q);
    t.lse = {static_cast<float*>(lse), problem.heads_q, shard.rows, shard.rows};
    return t;
  }
};

namespace longca::capi {
namespace {

/// Moves between the caller's tensors and the plan's, whose further rows are padding.
class Mover {
 public:
  explicit Mover(const longca_rank_plan& plan) : local_(plan.problem) {
    local_.tokens_q = local_.tokens_k = plan.rows();
  }
  void in(const longca_tensor& from, const char* name, const TensorView& to,
          bool of_queries) const {
    const TensorView view = view_of(from, name, local_, of_queries);
    if (view.tokens > 0) math().copy(view, token_rows(to, {0, view.tokens}), nullptr);
  }
  void out(const TensorView& from, const longca_tensor& to, const char* name,
           bool of_queries) const {
    const TensorView view = view_of(to, name, local_, of_queries);
    if (view.tokens > 0) math().copy(token_rows(from, {0, view.tokens}), view, nullptr);
  }

 private:
  static StepMath& math() { return step_math(DeviceKind::cpu); }
  Problem local_;
};

void run_forward(longca_rank_plan& p, const longca_forward_arguments& a, void* state) {
  const Mover move(p);
  move.in(a.q, "q", p.tensors.q, true);
  move.in(a.k, "k", p.tensors.k, false);
  move.in(a.v, "v", p.tensors.v, false);
  p.executor.forward(nullptr);
  move.out(p.tensors.o, a.o, "o", true);
  if (state == nullptr) return;
  auto* to = static_cast<std::byte*>(state);
  p.for_all_kept([&](const void* data, std::int64_t bytes) {
    std::memcpy(to, data, static_cast<std::size_t>(bytes));
    to += bytes;
  });
}

void run_backward(longca_rank_plan& p, const longca_backward_arguments& a, const void* state) {
  if (!p.problem.backward) throw_input_error("the plan was made with problem.backward = 0");
  const Mover move(p);
  move.in(a.dout, "dout", p.tensors.dout, true);
  move.in(a.q, "q", p.tensors.q, true);
  move.in(a.k, "k", p.tensors.k, false);
  move.in(a.v, "v", p.tensors.v, false);
  move.in(a.o, "o", p.tensors.o, true);
  const auto* from = static_cast<const std::byte*>(state);
  p.for_all_kept([&](void* data, std::int64_t bytes) {
    std::memcpy(data, from, static_cast<std::size_t>(bytes));
    from += bytes;
  });
  p.executor.backward(nullptr);
  move.out(p.tensors.dq, a.dq, "dq", true);
  move.out(p.tensors.dk, a.dk, "dk", false);
  move.out(p.tensors.dv, a.dv, "dv", false);
}

}  // namespace
}  // namespace longca::capi

extern "C" {

longca_status longca_partition_create(const longca_partition_options* options,
                                      const longca_mask* mask, longca_partition** partition) {
  return answer([&] {
    constexpr longca_partition_options kDefaults = LONGCA_PARTITION_OPTIONS_INIT;
    const auto given =
        known_part(required(options, "options"), kDefaults, "longca_partition_options");
    const longca_mask& m = required(mask, "mask");
    required(partition, "partition") = make_partition(given, m).release();
  });
}

size_t longca_partition_ranges(const longca_partition* partition, int64_t* ranges,
                               size_t capacity) {
  for (size_t i = 0; ranges != nullptr && i < std::min(capacity, partition->tokens.size()); ++i) {
    ranges[2 * i] = partition->tokens[i].begin;
    ranges[2 * i + 1] = partition->tokens[i].end;
  }
  return partition->tokens.size();
}

void longca_partition_release(longca_partition* partition) {
  delete partition;
}

longca_status longca_rank_plan_create(const longca_partition* partition,
                                      const longca_problem* problem,
                                      const longca_transport* transport, longca_rank_plan** plan) {
  return answer([&] {
    constexpr longca_problem kDefaults = LONGCA_PROBLEM_INIT;
    const auto given = known_part(required(problem, "problem"), kDefaults, "longca_problem");
    const longca_transport& t = required(transport, "transport");
    if (t.start == nullptr || t.finish == nullptr) {
      throw_input_error("the transport lacks start or finish");
    }
    required(plan, "plan") = new longca_rank_plan(required(partition, "partition"), given, t);
  });
}

int64_t longca_rank_plan_state_bytes(const longca_rank_plan* plan) {
  int64_t sum = 0;
  plan->for_all_kept([&](const void*, std::int64_t bytes) { sum += bytes; });
  return sum;
}

void longca_rank_plan_release(longca_rank_plan* plan) {
  delete plan;
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
    run_backward(p, required(arguments, "arguments"), state);
  });
}

}  // extern "C"
