#include "parallel/executor/rank_run.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "parallel/executor/kernel_computer.h"
#include "parallel/executor/op_analysis.h"
#include "parallel/executor/thread_ranks.h"

namespace longca::test {
namespace {

/// One rank computes at a time: they share the program's threads.
std::mutex& computing() {
  static std::mutex mutex;
  return mutex;
}

/// Some heads of some rows of a tensor.
TensorView part_of(TensorView tensor, std::int64_t token, std::int64_t count, std::int64_t head,
                   std::int64_t heads) {
  const std::int64_t skipped = token * tensor.token_stride + head * tensor.head_stride;
  tensor.data = static_cast<std::byte*>(tensor.data) + skipped * size_of(tensor.dtype);
  tensor.tokens = count;
  tensor.heads = heads;
  return tensor;
}

/// Between memory of the host and of the device; heads without gaps.
void copy_tensor(DeviceKind device, const TensorView& from, const TensorView& to) {
  LONGCA_CHECK(from.dtype == to.dtype && from.tokens == to.tokens && from.heads == to.heads &&
                   from.head_stride == from.dim && to.head_stride == to.dim,
               "tensors of different layouts");
  const std::int64_t row = from.heads * from.dim;
  const bool gapless = from.token_stride == row && to.token_stride == row;
  const std::int64_t pieces = gapless ? 1 : from.tokens;
  const std::int64_t bytes = (gapless ? from.tokens : 1) * row * size_of(from.dtype);
  for (std::int64_t i = 0; i < pieces && bytes > 0; ++i) {
    Device::get(device).copy(part_of(to, i, 1, 0, 1).data, part_of(from, i, 1, 0, 1).data, bytes);
  }
}

/// NaN everywhere.
void poison_rows(DeviceKind device, void* data, std::int64_t rows, std::int64_t row_bytes,
                 std::int64_t stride_bytes) {
  constexpr unsigned char kPoison = 0xff;
  const bool gapless = row_bytes == stride_bytes;
  for (std::int64_t row = 0; row < (gapless ? 1 : rows); ++row) {
    Device::get(device).fill(static_cast<std::byte*>(data) + row * stride_bytes, kPoison,
                             (gapless ? rows : 1) * row_bytes);
  }
}

/// Before the first step everything that a step writes, or reads and the caller has not given, is
/// poisoned.
class LockedComputer final : public StepComputer {
 public:
  LockedComputer(std::unique_ptr<StepComputer> inner, DeviceKind device, const RankTensors& given,
                 const AddressMap& map)
      : inner_(std::move(inner)),
        device_(device),
        given_{given.q, given.k, given.v, given.dout},
        map_(map) {}
  Support prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) override {
    const std::scoped_lock lock(computing());
    views_.push_back(views);
    return inner_->prepare(plan, backward, op, views);
  }
  void ready() override {
    const std::scoped_lock lock(computing());
    for (const OpViews& views : views_) {
      for (const TensorView& t : views.tensors) {
        const bool is_given =
            std::ranges::any_of(given_, [&](const TensorView& g) { return inside(g, t); });
        const std::int64_t size = size_of(t.dtype);
        if (!is_given) {
          poison_rows(device_, map_.at(t.data), t.tokens, t.heads * t.dim * size,
                      t.token_stride * size);
        }
      }
      for (const LseView& lse : views.lses) {
        poison_rows(device_, lse.data, lse.heads, 4 * lse.tokens, 4 * lse.head_stride);
      }
    }
    inner_->ready();
  }
  void run(bool backward, int op, Stream stream) override {
    const std::scoped_lock lock(computing());
    inner_->run(backward, op, stream);
  }
  void expect_early(int op) override { inner_->expect_early(op); }
  bool has_early(int op) const override { return inner_->has_early(op); }
  void run_early(int op, Stream stream) override {
    const std::scoped_lock lock(computing());
    inner_->run_early(op, stream);
  }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  std::map<std::string, std::string> notes() const override { return inner_->notes(); }

 private:
  static bool inside(const TensorView& whole, const TensorView& part) {
    const auto* begin = static_cast<const std::byte*>(whole.data);
    const auto* at = static_cast<const std::byte*>(part.data);
    return begin <= at && at < begin + whole.tokens * whole.token_stride * size_of(whole.dtype);
  }

  std::unique_ptr<StepComputer> inner_;
  DeviceKind device_;
  std::vector<OpViews> views_;
  std::array<TensorView, 4> given_;
  const AddressMap& map_;
};

const TensorView& whole_tensor(const Outputs& out, TensorRole role) {
  switch (role) {
    case TensorRole::o:
      return out.o.view();
    case TensorRole::dq:
      return out.dq.view();
    case TensorRole::dk:
      return out.dk.view();
    case TensorRole::dv:
      return out.dv.view();
    default:
      throw_internal_error(__FILE__, __LINE__, "role", "no result");
  }
}

/// The caller's tensors of one rank. What the plan does not say of their tokens stays NaN.
class CallerTensors {
 public:
  CallerTensors(const RankPlan& plan, const Problem& problem, const Inputs& inputs,
                Communicator& communicator)
      : dim_(problem.head_dim), dtype_(problem.dtype), communicator_(communicator) {
    for (const PlanBuffer& buffer : plan.buffers) {
      if (buffer.external) allocate(buffer);
    }
    if (problem.sink) {
      const std::int64_t bytes = 4 * std::int64_t{problem.heads_q};
      auto* const sinks = static_cast<float*>(communicator.allocate(2 * bytes));
      Device::get(problem.device).copy(sinks, inputs.sink_logits(), bytes);
      views.sink = sinks;
      views.dsink = sinks + problem.heads_q;
      poison_rows(problem.device, views.dsink, 1, bytes, bytes);
    }
    for (const Range& range : owned_tokens(plan)) {
      for (const auto& [whole, shard] :
           {std::pair{&inputs.q, &views.q}, std::pair{&inputs.k, &views.k},
            std::pair{&inputs.v, &views.v}, std::pair{&inputs.dout, &views.dout}}) {
        if (shard->data == nullptr) continue;
        copy_tensor(problem.device,
                    part_of(whole->view(), range.begin, range.size(), 0, shard->heads),
                    part_of(*shard, filled_, range.size(), 0, shard->heads));
      }
      filled_ += range.size();
    }
  }

  RankTensors views;

  /// Gives tensors that no message lands in addresses without memory, and copies of themselves to
  /// move to.
  void stand_in(const RankPlan& plan, AddressMap& map) {
    const auto landed = tensors_that_messages_land_in(plan);
    for (const auto& [role, view] : by_role()) {
      const std::int64_t bytes = view->tokens * view->token_stride * size_of(dtype_);
      if (bytes == 0 || std::ranges::find(landed, role) != landed.end()) continue;
      void* const address = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      LONGCA_CHECK(address != MAP_FAILED, "no addresses for {} bytes", bytes);
      std::array<void*, 2> places{view->data, communicator_.allocate(bytes)};
      Device::get(DeviceKind::cpu).copy(places[1], places[0], bytes);
      standing_in_.push_back({address, bytes, places});
      view->data = address;
    }
    move(map, 0);
  }
  /// Where the tensors are in repetition `number`. What is elsewhere is not the caller's any more.
  void move(AddressMap& map, int number) const {
    for (const StandIn& s : standing_in_) {
      map.bind(s.address, s.bytes, s.places[static_cast<std::size_t>(number % 2)]);
    }
  }
  ~CallerTensors() {
    for (const StandIn& s : standing_in_) munmap(s.address, static_cast<std::size_t>(s.bytes));
  }
  CallerTensors(const CallerTensors&) = delete;
  CallerTensors& operator=(const CallerTensors&) = delete;

 private:
  struct StandIn {
    void* address;
    std::int64_t bytes;
    std::array<void*, 2> places;
  };
  std::map<TensorRole, TensorView*> by_role() {
    std::map<TensorRole, TensorView*> all{
        {TensorRole::q, &views.q},   {TensorRole::k, &views.k},      {TensorRole::v, &views.v},
        {TensorRole::o, &views.o},   {TensorRole::dq, &views.dq},    {TensorRole::dk, &views.dk},
        {TensorRole::dv, &views.dv}, {TensorRole::dout, &views.dout}};
    return all;
  }

  /// The shard's tokens are where the plan says that the caller's o has its rows.
  static std::vector<Range> owned_tokens(const RankPlan& plan) {
    for (const Placement& p : plan.results) {
      if (p.role == TensorRole::o) return p.tokens;
    }
    return {};
  }

  void allocate(const PlanBuffer& buffer) {
    const std::int64_t rows = buffer.tokens * buffer.heads;
    if (buffer.role == TensorRole::lse) {
      views.lse = {static_cast<float*>(communicator_.allocate(rows * 4)), buffer.heads,
                   buffer.tokens, buffer.tokens};
      return;
    }
    TensorView& view = *by_role().at(buffer.role);
    void* const data = communicator_.allocate(rows * dim_ * size_of(dtype_));
    view = {data, dtype_, buffer.tokens, buffer.heads, dim_, buffer.heads * dim_, dim_};
  }

  std::int64_t dim_;
  DType dtype_;
  Communicator& communicator_;
  std::int64_t filled_ = 0;
  std::vector<StandIn> standing_in_;
};

/// Copies one rank's results to where they belong in the whole.
void deliver(DeviceKind device, const Executor& executor, const AddressMap& map, const Placement& p,
             const Outputs& whole) {
  std::int64_t row = 0;
  for (const Range& range : p.tokens) {
    const std::int64_t count = range.size();
    if (p.role == TensorRole::lse) {
      const LseView part = executor.lse_result(p);
      for (std::int64_t h = 0; h < p.heads.size(); ++h) {
        Device::get(device).copy(whole.lse.view().head(p.heads.begin + h) + range.begin,
                                 part.head(h) + row, 4 * count);
      }
    } else {
      copy_tensor(
          device, part_of(map.at(executor.result(p)), row, count, 0, p.heads.size()),
          part_of(whole_tensor(whole, p.role), range.begin, count, p.heads.begin, p.heads.size()));
    }
    row += count;
  }
  LONGCA_CHECK(row == p.region.tokens.size() && p.heads.size() == p.region.heads.size(),
               "a result of {} tokens lies in {} rows", row, p.region.tokens.size());
}

/// Adds a rank's part of dsink to the whole, in the order of the ranks.
void add_sink_gradients(const Problem& problem, Communicator& communicator, const float* part,
                        const Outputs& whole) {
  std::vector<float> parts(static_cast<std::size_t>(problem.heads_q));
  Device::get(problem.device).copy(parts.data(), part, 4 * std::ssize(parts));
  auto* const sums = static_cast<float*>(whole.dsink.view().data);
  for (int rank = 0; rank < communicator.size(); ++rank) {
    communicator.barrier(Device::get(problem.device).stream());
    for (std::size_t head = 0; rank == communicator.rank() && head < parts.size(); ++head) {
      sums[head] = (rank == 0 ? 0 : sums[head]) + parts[head];
    }
  }
}

void run_one(const RankPlan& plan, const ParallelProblem& problem, const Inputs& inputs,
             const RunOptions& options, Communicator& communicator, RankRun& run) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const Problem& p = problem.problem;
  CallerTensors tensors(plan, p, inputs, communicator);
  AddressMap map;
  if (options.moves) {
    tensors.stand_in(plan, map);
    communicator.map_sends(map);
  }
  std::unique_ptr<StepComputer> computer = std::make_unique<KernelComputer>(
      *options.kernel, p, options.merging, options.moves ? &map : nullptr);
  if (options.wrap_computer) {
    computer = options.wrap_computer(std::move(computer), communicator.rank());
  }
  LockedComputer locked(std::move(computer), p.device, tensors.views, map);
  const Stream stream = Device::get(p.device).stream();
  Executor executor(plan, p, tensors.views, communicator, locked);
  run.supports[rank] = executor.support();
  // Nobody runs what one rank cannot: the others would wait for it.
  communicator.barrier(stream);
  if (!std::ranges::all_of(run.supports, [](const Support& s) { return s.ok(); })) return;

  const auto sums = [&](const std::vector<Op>& ops) {
    return sum_plan(plan, ops, p.head_dim, p.dtype).bytes_sent;
  };
  for (int i = 0; i < options.repetitions; ++i) {
    communicator.reset_bytes_sent();
    tensors.move(map, i);
    executor.forward(stream, options.communicate);
    run.forward_bytes[rank] = communicator.bytes_sent();
  }
  for (int i = 0; i < options.repetitions && !plan.backward.empty(); ++i) {
    communicator.reset_bytes_sent();
    tensors.move(map, i);
    executor.backward(stream, options.communicate);
    run.backward_bytes[rank] = communicator.bytes_sent();
  }
  run.forward_plan_bytes[rank] = sums(plan.forward);
  run.backward_plan_bytes[rank] = sums(plan.backward);
  run.workspace_bytes[rank] = locked.workspace_bytes();
  if (p.sink && p.backward) {
    add_sink_gradients(p, communicator, tensors.views.dsink, run.outputs);
  }
  for (const Placement& placement : plan.results)
    deliver(p.device, executor, map, placement, run.outputs);
}

}  // namespace

RankRun run_ranks(const std::function<RankPlan(int)>& plan_of, const ParallelProblem& problem,
                  const Inputs& inputs, const RunOptions& options) {
  RankRun run(problem.problem);
  const auto ranks = static_cast<std::size_t>(problem.ranks);
  run.supports.resize(ranks);
  for (auto* list : {&run.forward_bytes, &run.forward_plan_bytes, &run.backward_bytes,
                     &run.backward_plan_bytes, &run.workspace_bytes}) {
    list->resize(ranks);
  }
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < problem.ranks; ++rank) plans.push_back(plan_of(rank));
  const auto body = [&](Communicator& communicator) {
    const RankPlan& plan = plans[static_cast<std::size_t>(communicator.rank())];
    if (!options.wrap_communicator) {
      return run_one(plan, problem, inputs, options, communicator, run);
    }
    const auto wrapped = options.wrap_communicator(communicator);
    run_one(plan, problem, inputs, options, *wrapped, run);
  };
  if (options.launch) {
    options.launch(problem.ranks, body);
  } else {
    ThreadRanks(problem.ranks).run(body);
  }
  return run;
}

RankRun run_ranks(const Scheme& scheme, const ParallelProblem& problem, const Inputs& inputs,
                  const RunOptions& options) {
  return run_ranks([&](int rank) { return scheme.plan(problem, rank); }, problem, inputs, options);
}

}  // namespace longca::test
