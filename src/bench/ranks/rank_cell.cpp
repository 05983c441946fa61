#include "bench/ranks/rank_cell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "attention/api/registry.h"
#include "bench/cell/steps.h"
#include "bench/ranks/gather_results.h"
#include "bench/ranks/min_bytes.h"
#include "bench/ranks/rank_team.h"
#include "bench/suite/scheme_axes.h"
#include "parallel/transport/long_wait.h"

namespace longca {
namespace {

/// Upper bound of the plan's own buffers in bytes: in the executor some share memory.
std::int64_t own_buffer_bytes(const RankPlan& plan, const Problem& problem) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].external) continue;
    bytes += region_bytes(plan, plan.whole(static_cast<int>(i)), problem.head_dim, problem.dtype);
  }
  return bytes;
}

}  // namespace

RankCell::RankCell(const Case& c, const CellOptions& options, CellProblem& shared,
                   DeviceClock* clock, std::int64_t memory_limit, RankTeam& team,
                   const StageListener& stage, const std::function<void(RankPlan&)>& alter,
                   Record& record)
    : case_(c),
      options_(options),
      shared_(shared),
      clock_(clock),
      memory_limit_(memory_limit),
      team_(team),
      stage_(stage),
      alter_(alter),
      record_(record),
      problem_(c.problem()),
      kernel_(KernelRegistry::global().find(c.kernel, problem_.device)),
      scheme_(find_scheme(c.scheme.value())),
      parallel_(parallel_problem(c, shared.generated, team.ranks_per_node)) {}

RankCell::~RankCell() {
  // Destroyed before the executor and its buffers, where a kernel's threads may still write.
  computer_.reset();
}

void RankCell::together(std::string_view stage, const std::function<Status()>& step) const {
  longca::together(team_.control, stage, step);
}

void RankCell::run() {
  record_.metrics["area"] = shared_.generated.mask.mean_area();
  make_plan();
  make_reference();
  memory_.emplace(device(), 0);
  connect();
  make_executor();
  note_balance();
  run_pass(Pass::forward);
  if (problem_.backward) run_pass(Pass::backward);
  whole_ = {};
  holds_whole_ = false;
  if (record_.status.ok() && options_.timed) time();
  stage_("clean-up");
  note_end();
}

void RankCell::make_plan() {
  stage_("plan");
  together("plan", [&] { return scheme_.supports(parallel_); });
  if (const Support there = team_.available(*case_.transport); !there.ok()) throw Refused(there);
  together("plan", [&]() -> Status {
    const auto begin = SteadyClock::now();
    plan_ = scheme_.plan(parallel_, team_.control.rank());
    plan_ms_ = seconds_since(begin) * 1e3;
    if (alter_) alter_(plan_);
    shard_ = shard_of(plan_);
    return check_memory();
  });
}

/// `oom`, before anything is allocated, if what is known beforehand exceeds the limit.
Status RankCell::check_memory() const {
  if (memory_limit_ == 0) return {};
  std::int64_t needed = shard_bytes(problem_, shard_.rows) + own_buffer_bytes(plan_, problem_);
  std::string what = fmt::format("tensors and buffers of {}", in_mib(needed));
  if (is_root()) {
    Problem both = problem_;
    both.backward = true;
    std::int64_t whole = tensor_bytes(both);
    if (needed + whole <= memory_limit_) {  // else without the estimate: it takes time per token
      whole += estimate_verifier_bytes(both, shared_.generated.mask,
                                       VerifyBudget{options_.limits.verify_budget_s});
    }
    needed += whole;
    what += fmt::format(" and, to verify, the whole problem of {}", in_mib(whole));
  }
  if (needed <= memory_limit_) return {};
  return {StatusCode::oom,
          fmt::format("{} pass the memory limit of {}", what, in_mib(memory_limit_))};
}

/// Rank 0 keeps inputs and reference of the whole problem for the cells that share it.
void RankCell::make_reference() {
  if (!is_root()) stage_("reference");  // the wait for rank 0 does not count as this case's time
  together("reference", [&]() -> Status {
    if (is_root()) {
      shared_.make_inputs_and_reference(case_, options_.limits.verify_budget_s, stage_);
    }
    return {};
  });
  checked_ =
      broadcast(team_.control, is_root() ? shared_.reference->checked_heads() : CheckedHeads{});
}

void RankCell::connect() {
  stage_("inputs");
  communicator_ = team_.connect(*case_.transport);
  together("inputs", [&]() -> Status {
    tensors_.emplace(problem_, shard_, *communicator_);
    tensors_->draw(case_.seed, case_.input_style(), shared_.generated.lengths);
    inputs_fingerprint_ = tensors_->input_fingerprint();
    return {};
  });
}

void RankCell::make_executor() {
  stage_("plan");
  const auto begin = SteadyClock::now();
  together("plan", [&] {
    computer_.emplace(kernel_, problem_);
    executor_ =
        std::make_unique<Executor>(plan_, problem_, tensors_->views(), *communicator_, *computer_);
    device().synchronize();
    return executor_->support();
  });
  const double made_ms = seconds_since(begin) * 1e3 - computer_->compile_ms();
  record_.metrics["scheme_plan_ms"] = slowest(plan_ms_);
  record_.metrics["plan_ms"] = slowest(plan_ms_ + std::max(made_ms, 0.0));
  kernel_s_ += record_.metrics["plan_ms"] / 1e3;
}

std::vector<Pass> RankCell::timed_passes() const {
  if (case_.pass == Pass::step) return {Pass::forward, Pass::backward};
  return {case_.pass};
}

void RankCell::note_balance() {
  RankControl& control = team_.control;
  const double ranks = control.size();
  double cells = 0;
  double min_bytes = 0;
  double formula = 0;
  for (const Pass pass : timed_passes()) {
    Problem of_pass = problem_;
    of_pass.backward = pass == Pass::backward;
    cells += sum_plan(plan_, ops(pass), problem_.head_dim, problem_.dtype).cells;
    min_bytes +=
        static_cast<double>(min_bytes_received(of_pass, shared_.generated.mask, shard_.tokens));
    formula +=
        static_cast<double>(scheme_.formula_bytes(parallel_, control.rank(), of_pass.backward));
  }
  const double mean = control.sum(cells) / ranks;
  const double max = control.max(cells);
  if (mean > 0) record_.metrics["imbalance"] = max / mean;
  record_.metrics["bytes_least"] = control.sum(min_bytes) / ranks;
  record_.metrics["bytes_formula"] = control.max(formula);
  record_.metrics["padding_tokens"] =
      control.sum(static_cast<double>(shard_.rows - shard_.count()));
  record_.notes["transport"] =
      fmt::format("{}, {}", communicator_->name(), communicator_->version());
  if (!plan_.notes.empty()) record_.notes["plan"] = fmt::format("{}", fmt::join(plan_.notes, "; "));
}

void RankCell::run_pass(Pass pass) {
  const bool backward = pass == Pass::backward;
  stage_(to_string(pass));
  backward ? tensors_->poison_backward() : tensors_->poison_forward();
  fill_results(device(), pass_tensors(), pass, kPoison);  // what lies in buffers of the plan, too
  communicator_->reset_bytes_sent();
  // Other ranks' results must not arrive before this rank has poisoned their destination.
  communicator_->barrier(device().stream());
  const auto begin = SteadyClock::now();
  const auto times = make_lane_times(problem_.device);
  backward ? executor_->backward(device().stream(), true, times.get())
           : executor_->forward(device().stream(), true, times.get());
  wait_for(*times);
  device().synchronize();
  const double elapsed_s = slowest(seconds_since(begin));
  const bool is_step = case_.pass == Pass::step;
  warmed_s_ = is_step ? warmed_s_ + elapsed_s : elapsed_s;
  kernel_s_ += elapsed_s;
  sent_ = (is_step ? sent_ : 0) + static_cast<double>(communicator_->bytes_sent());
  record_.metrics["bytes_sent"] = slowest(sent_);
  memory_->note_peak(record_);
  memory_->note_device(record_);
  together(to_string(pass), [&] { return margins_kept(); });
  verify(pass, record_);
  if (backward && problem_.deterministic && record_.status.ok()) {
    expect_same_bits(result_fingerprint());
  }
}

/// Of this rank's own outputs; what steps write between them has no margins.
Status RankCell::margins_kept() const {
  const std::string written = tensors_->written_margin();
  if (written.empty()) return {};
  return {StatusCode::wrong, "the kernel, or a message, wrote outside of the outputs: " + written};
}

/// Notes errors and status in `record`; other ranks than 0 know the status alone.
void RankCell::verify(Pass pass, Record& record) {
  stage_("verify");
  memory_->pause();
  // Gradients of drawn keys are verified from the o and lse that the ranks computed.
  const bool forward_missing = pass != Pass::backward || !holds_whole_;
  together("verify", [&]() -> Status {
    if (!is_root()) return {};
    if (!holds_whole_) whole_ = Outputs::for_problem(problem_);
    if (forward_missing) whole_.poison_forward();
    if (pass != Pass::forward) whole_.poison_backward();
    return {};
  });
  holds_whole_ = true;
  std::vector<TensorRole> roles;
  if (forward_missing) roles = {TensorRole::o, TensorRole::lse};
  if (pass != Pass::forward) {
    roles.insert(roles.end(), {TensorRole::dq, TensorRole::dk, TensorRole::dv});
  }
  gather_results(team_.control, device(), plan_, *executor_, roles, checked_,
                 is_root() ? &whole_ : nullptr);
  if (problem_.sink && pass != Pass::forward) {
    gather_sink_gradients(team_.control, device(), tensors_->dsink(),
                          is_root() ? &whole_ : nullptr);
  }
  together("verify", [&]() -> Status {
    if (is_root()) verify_results(pass, problem_, kernel_, shared_, whole_, record);
    return {};
  });
  const bool still_ok = team_.control.broadcast(record.status.ok() ? 1.0 : 0.0) > 0;
  if (!is_root() && !still_ok) record.status = {StatusCode::wrong, "rank 0 says why"};
  memory_->resume(CellMemory::TakenBy::runner);
}

/// Runs the backward pass again on the same inputs and compares on every rank.
void RankCell::expect_same_bits(std::uint64_t verified) {
  tensors_->poison_backward();
  communicator_->barrier(device().stream());
  executor_->backward(device().stream());
  device().synchronize();
  if (slowest(result_fingerprint() == verified ? 0 : 1) == 0) return;
  set_wrong(record_, "deterministic=1, and a second pass gave gradients of other bits");
}

/// Waits for the pass. Tells the parent when this rank's device starts and stops waiting for other
/// ranks, which shows the rank that hangs when none moves.
void RankCell::wait_for(LaneTimes& times) const {
  constexpr std::chrono::microseconds kPollInterval{100};
  const auto begin = SteadyClock::now();
  bool waits = false;
  for (PassState state = times.state(); state != PassState::ended; state = times.state()) {
    std::this_thread::sleep_for(kPollInterval);
    const bool now = state == PassState::waits && SteadyClock::now() - begin > kLongWait;
    if (now != waits && team_.on_device_wait) team_.on_device_wait(now);
    waits = now;
  }
  if (waits && team_.on_device_wait) team_.on_device_wait(false);
}

void RankCell::note_end() {
  together("clean-up", [&]() -> Status {
    device().synchronize();
    if (Status kept = margins_kept(); !kept.ok()) return kept;
    if (tensors_->input_fingerprint() == inputs_fingerprint_) return {};
    return {StatusCode::wrong, "the kernel, or a message, wrote into the inputs"};
  });
  record_.metrics["workspace_bytes"] =
      static_cast<double>(executor_->buffer_bytes() + computer_->workspace_bytes());
  for (const char* name : {"peak_bytes", "workspace_bytes", "device_bytes"}) {
    const auto found = record_.metrics.find(name);
    if (found != record_.metrics.end()) found->second = slowest(found->second);
  }
  note_plan_end(kernel_, slowest(computer_->compile_ms()), computer_->notes(), record_);
}

}  // namespace longca
