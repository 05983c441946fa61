#include "bench/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "attention/reference/verifier.h"
#include "attention/registry.h"
#include "bench/cell_memory.h"
#include "bench/cell_tensors.h"
#include "bench/dump.h"
#include "bench/gpu_sampler.h"
#include "bench/measurement.h"
#include "core/error.h"
#include "core/memory.h"

namespace longca {
namespace {

using Clock = std::chrono::steady_clock;

/// Of a case's limit: a kernel that is slow, not stuck, gets its time, if from few samples.
constexpr double kShareForTiming = 0.8;
/// Bytes of a GPU that stay free for what goes past the tracker: code that is loaded when it is
/// first used, local memory of threads, libraries' own.
constexpr std::int64_t kDeviceSlack = std::int64_t{512} << 20;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string in_mib(std::int64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// The error that has left the device unusable. Waits for what a cell that threw left in the queue:
/// its errors are not the next cell's.
std::optional<std::string> fault_after_all_work(Device& device) {
  try {
    device.synchronize();
  } catch (const std::exception&) {
    return device.fault();  // nothing, if the error was that of one call
  }
  return std::nullopt;
}

/// No number without a check.
void forget_times(Record& record) {
  for (const char* name : {"time_ms", "tflops", "time_ci_pct"}) record.metrics.erase(name);
  record.samples_ms.clear();
  record.stop.clear();
}

}  // namespace

/// One problem's mask, and on demand its inputs and reference.
struct CellRunner::ProblemData {
  explicit ProblemData(const Case& c)
      : key(c.problem_key()), spec(c.mask_spec()), generated(generate_mask(spec)) {}

  void make_inputs_and_reference(const Case& c, double budget_s, const StageListener& listener) {
    if (reference) return;
    Problem problem = c.problem();
    problem.backward = true;  // one reference serves both passes
    listener("inputs");
    inputs = make_inputs(problem, c.seed);
    inputs_fingerprint = fingerprint(inputs, Device::get(problem.device));
    listener("reference");
    reference = make_verifier(problem, generated.mask, inputs, VerifyBudget{budget_s}, c.seed);
  }

  std::string key;
  MaskSpec spec;
  GeneratedMask generated;
  std::uint64_t inputs_fingerprint = 0;
  Inputs inputs;
  std::unique_ptr<Verifier> reference;
};

/// One cell on its way to a record.
class CellRunner::Cell {
 public:
  Cell(const Case& c, const CellOptions& options, ProblemData& data, DeviceClock* clock,
       std::int64_t memory_limit, const StageListener& stage, Record& record)
      : case_(c),
        problem_(c.problem()),
        kernel_(KernelRegistry::global().find(c.kernel, problem_.device)),
        options_(options),
        data_(data),
        clock_(clock),
        memory_limit_(memory_limit),
        stage_(stage),
        record_(record) {}

  void run() {
    record_.metrics["area"] = data_.generated.mask.mean_area();
    record_.status = supported();
    if (!record_.status.ok() || !fits_in_memory()) return;
    data_.make_inputs_and_reference(case_, options_.limits.verify_budget_s, stage_);
    outputs_ = Outputs::for_problem(problem_);
    memory_.emplace(device(), tensor_bytes(problem_));
    make_plan();
    run_forward();
    if (problem_.backward) run_backward();
    if (options_.dump) dump();
    if (record_.status.ok() && options_.timed) time();
    stage_("clean-up");
    note_plan();
    plan_.reset();
    device().synchronize();  // an error of anything that is still queued is this cell's
    if (fingerprint(data_.inputs, device()) != data_.inputs_fingerprint) {
      fail("the kernel wrote into its inputs");
      data_.reference.reset();  // the next cell draws its own
    }
    if (!record_.status.ok()) forget_times(record_);
  }

 private:
  const Inputs& inputs() const { return data_.inputs; }
  Device& device() const { return Device::get(problem_.device); }

  void fail(std::string reason) {
    if (record_.status.ok()) record_.status = {StatusCode::wrong, std::move(reason)};
  }

  Support supported() const {
    if (case_.mode == "graph" && problem_.device == DeviceKind::cpu) {
      return Support::unsupported("mode graph replays a CUDA graph, which the CPU does not have");
    }
    return kernel_.supports(problem_, data_.generated.mask);
  }

  /// `oom` before anything is allocated, where tensors and reference alone are too large.
  bool fits_in_memory() {
    const std::int64_t tensors = tensor_bytes(problem_);
    const std::int64_t reference = estimate_verifier_bytes(
        problem_, data_.generated.mask, VerifyBudget{options_.limits.verify_budget_s});
    if (memory_limit_ == 0 || tensors + reference <= memory_limit_) return true;
    record_.status = {StatusCode::oom,
                      fmt::format("inputs and outputs of {} and a reference of {} "
                                  "pass the memory limit of {}",
                                  in_mib(tensors), in_mib(reference), in_mib(memory_limit_))};
    return false;
  }

  void make_plan() {
    stage_("plan");
    const auto begin = Clock::now();
    plan_ = kernel_.plan(problem_, data_.generated.mask);
    const double plan_s = seconds_since(begin);
    record_.metrics["plan_ms"] = plan_s * 1e3 - plan_->compile_ms();
    kernel_s_ += plan_s;
  }

  /// What compiling took is neither the plan's time nor warm-up.
  void first_run(const std::function<void()>& call) {
    const double compiled_ms = plan_->compile_ms();
    const auto begin = Clock::now();
    call();
    device().synchronize();
    const double elapsed_s = seconds_since(begin);
    warmed_s_ = elapsed_s - (plan_->compile_ms() - compiled_ms) / 1e3;
    kernel_s_ += elapsed_s;
    memory_->note(record_, *plan_);
  }

  void note_plan() {
    record_.notes.merge(plan_->notes());
    if (plan_->compile_ms() > 0) record_.metrics["compile_ms"] = plan_->compile_ms();
  }

  void run_forward() {
    stage_("forward");
    outputs_.poison_forward();
    first_run([&] { plan_->forward(outputs_.forward_args(inputs())); });
    verify(Pass::forward);
  }

  void run_backward() {
    stage_("backward");
    outputs_.poison_backward();
    first_run([&] { plan_->backward(outputs_.backward_args(inputs())); });
    verify(Pass::backward);
  }

  void verify(Pass pass) {
    stage_("verify");
    memory_->pause();
    const Verdict verdict = pass == Pass::forward ? check_forward() : check_backward();
    note_errors(verdict);
    if (!verdict.ok) {
      const bool own_forward = pass == Pass::forward && problem_.backward;
      fail((own_forward ? "its own forward pass: " : "") + verdict.reason);
    }
    memory_->resume();
  }

  Verdict check_forward() {
    const ConstLseView lse(outputs_.lse.view());
    const bool has_lse = kernel_.capabilities().returns_lse;
    if (!has_lse) record_.notes["lse"] = "not returned";
    return data_.reference->check_forward(outputs_.o.view(), has_lse ? &lse : nullptr);
  }

  Verdict check_backward() {
    return data_.reference->check_backward(outputs_.backward_args(inputs()));
  }

  void note_errors(const Verdict& verdict) {
    const std::pair<const char*, const std::optional<double>*> errors[] = {
        {"error_o", &verdict.error_o},
        {"error_lse", &verdict.error_lse},
        {"error_dq", &verdict.error_dq},
        {"error_dk", &verdict.error_dk},
        {"error_dv", &verdict.error_dv}};
    for (const auto& [name, value] : errors) {
      if (*value) record_.metrics[name] = **value;
    }
    record_.metrics["verified_fraction"] = verdict.fraction;
  }

  /// Times the case's pass. Outputs are poisoned before each repetition of a burst (once, before a
  /// sustained run), and what the last one left is compared with what was verified: equal to the
  /// bit, or else it is verified again.
  void time() {
    const bool backward = problem_.backward;
    const std::uint64_t verified = result_fingerprint();
    const ForwardArgs forward = outputs_.forward_args(inputs());
    const BackwardArgs gradients = backward ? outputs_.backward_args(inputs()) : BackwardArgs{};
    std::function<void()> call = [&] {
      backward ? plan_->backward(gradients) : plan_->forward(forward);
    };
    const auto prepare = [&] { backward ? outputs_.poison_backward() : outputs_.poison_forward(); };
    MeasureOptions options;
    options.mode = parse_measure_mode(case_.mode);
    options.time_limit_s = options_.limits.time_limit_s;
    options.cool_down_ms = options_.limits.cool_down_ms;
    options.warmed_s = warmed_s_;
    options.time_left_s = kShareForTiming * options_.limits.case_limit_s - kernel_s_;
    stage_("time");
    try {
      if (options.mode == MeasureMode::graph) call = clock_->as_graph(call);
    } catch (const GraphRefused& refused) {
      record_.status = Status::unsupported(refused.what());
      return;
    }
    prepare();
    GpuSampler sampler(device().properties().pci_bus_id);
    const Measurement measured = measure(*clock_, call, prepare, options);
    sampler.finish(record_);
    memory_->note(record_, *plan_);
    note_times(measured);
    if (result_fingerprint() == verified) return;
    verify(case_.pass);
    if (!record_.status.ok()) {
      record_.status.reason = "after the timed repetitions: " + record_.status.reason;
    }
  }

  std::uint64_t result_fingerprint() const {
    return problem_.backward ? outputs_.backward_fingerprint() : outputs_.forward_fingerprint();
  }

  void note_times(const Measurement& measured) {
    const double flops = problem_.backward ? backward_flops(problem_, data_.generated.mask)
                                           : forward_flops(problem_, data_.generated.mask);
    record_.metrics["time_ms"] = measured.median_ms;
    record_.metrics["tflops"] = flops / measured.median_ms / 1e9;
    if (measured.interval) {
      record_.metrics["time_ci_pct"] = measured.interval->relative_half_width() * 100;
    }
    if (!measured.held) {
      record_.notes["hold"] =
          "the kernel waits on the host, or queues more than the device takes at once: launch time "
          "is in the times";
    }
    record_.samples_ms = measured.samples_ms;
    record_.stop = measured.stop == Stop::converged ? "converged" : "time_limit";
  }

  void dump() {
    stage_("dump");
    dump_cell(*options_.dump, device(), inputs(), outputs_, data_.generated, data_.spec);
  }

  const Case& case_;
  const Problem problem_;
  const Kernel& kernel_;
  const CellOptions& options_;
  ProblemData& data_;
  DeviceClock* clock_;         ///< null for a cell that is not timed
  std::int64_t memory_limit_;  ///< bytes, 0 for none
  const StageListener& stage_;
  Record& record_;
  Outputs outputs_;
  std::unique_ptr<Plan> plan_;
  std::optional<CellMemory> memory_;
  double warmed_s_ = 0;  ///< by the call that was verified last
  double kernel_s_ = 0;  ///< that the case's limit has counted so far
};

CellRunner::CellRunner(StageListener listener) : listener_(std::move(listener)) {}
CellRunner::~CellRunner() = default;

CellRunner::ProblemData& CellRunner::problem_for(const Case& c) {
  if (!problem_ || problem_->key != c.problem_key()) {
    problem_.reset();  // before the next one takes its memory
    Device::get(c.problem().device).memory().release_cache();
    problem_ = std::make_unique<ProblemData>(c);
  }
  return *problem_;
}

DeviceClock* CellRunner::clock_for(DeviceKind device) {
  auto& clock = clocks_[static_cast<std::size_t>(device)];
  if (!clock) clock = make_device_clock(device);
  return clock.get();
}

std::int64_t CellRunner::limit_memory(DeviceKind kind, const RunLimits& limits) {
  std::int64_t limit = limits.memory_limit_mib << 20;
  MemoryTracker& memory = Device::get(kind).memory();
  if (kind != DeviceKind::cpu) {
    const std::int64_t there =
        memory.bytes_in_use() + Device::get(kind).available_bytes() - kDeviceSlack;
    limit = limit == 0 ? there : std::min(limit, there);
    MemoryTracker::host().set_limit(0);
  }
  memory.set_limit(limit);
  return limit;
}

/// Nothing of a device that is lost can be given back: the process will end, and until then it
/// keeps what it has.
void CellRunner::give_up_device(const std::string& fault, const std::string& stage,
                                std::unique_ptr<Cell> cell, Record& record) {
  device_lost_ = true;
  [[maybe_unused]] const auto* leaked_cell = cell.release();
  [[maybe_unused]] const auto* leaked_problem = problem_.release();
  for (auto& clock : clocks_) [[maybe_unused]] const auto* leaked_clock = clock.release();
  if (record.status.code != StatusCode::crash ||
      record.status.reason.find(fault) == std::string::npos) {
    record.status = {StatusCode::crash, fmt::format("in {} the device failed: {}", stage, fault)};
  }
  forget_times(record);
}

Record CellRunner::run(const Case& c, const CellOptions& options) {
  Record record;
  record.c = c;
  std::string stage = "set-up";
  const StageListener listener = [&](std::string_view next) {
    stage = next;
    listener_(next);
  };
  const DeviceKind kind = c.problem().device;
  if (record.status = Device::available(kind); !record.status.ok()) return record;
  std::unique_ptr<Cell> cell;
  try {
    ProblemData& problem = problem_for(c);
    DeviceClock* clock = options.timed ? clock_for(kind) : nullptr;
    const std::int64_t limit = limit_memory(kind, options.limits);
    cell = std::make_unique<Cell>(c, options, problem, clock, limit, listener, record);
    cell->run();
  } catch (const OutOfMemory& error) {
    record.status = {StatusCode::oom, fmt::format("in {}: {}", stage, error.what())};
  } catch (const std::bad_alloc&) {
    record.status = {StatusCode::oom, fmt::format("in {}: an allocation was refused", stage)};
  } catch (const std::exception& error) {
    record.status = {StatusCode::crash, fmt::format("threw in {}: {}", stage, error.what())};
  } catch (...) {
    record.status = {StatusCode::crash, fmt::format("threw in {}, not a std::exception", stage)};
  }
  if (const auto fault = fault_after_all_work(Device::get(kind))) {
    give_up_device(*fault, stage, std::move(cell), record);
  }
  return record;
}

}  // namespace longca
