#include "bench/cell.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "attention/reference/verifier.h"
#include "attention/registry.h"
#include "bench/cell_tensors.h"
#include "bench/dump.h"
#include "bench/measurement.h"
#include "core/error.h"
#include "core/memory.h"

namespace longca {
namespace {

using Clock = std::chrono::steady_clock;

/// Of a case's limit: a kernel that is slow, not stuck, gets its time, if from few samples.
constexpr double kShareForTiming = 0.8;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string in_mib(std::int64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
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
       const StageListener& stage, Record& record)
      : case_(c),
        problem_(c.problem()),
        kernel_(KernelRegistry::global().find(c.kernel, problem_.device)),
        options_(options),
        data_(data),
        clock_(clock),
        stage_(stage),
        record_(record) {}

  void run() {
    record_.metrics["area"] = data_.generated.mask.mean_area();
    record_.status = kernel_.supports(problem_, data_.generated.mask);
    if (!record_.status.ok() || !fits_in_memory()) return;
    data_.make_inputs_and_reference(case_, options_.limits.verify_budget_s, stage_);
    outputs_ = Outputs::for_problem(problem_);
    foreign_bytes_ = memory().bytes_in_use() - tensor_bytes(problem_);
    memory().reset_peak();
    make_plan();
    run_forward();
    if (problem_.backward) run_backward();
    if (options_.dump) dump();
    if (record_.status.ok() && options_.timed) time();
    stage_("clean-up");
    plan_.reset();
    if (fingerprint(data_.inputs, device()) != data_.inputs_fingerprint) {
      fail("the kernel wrote into its inputs");
      data_.reference.reset();  // the next cell draws its own
    }
    if (!record_.status.ok()) forget_times();
  }

 private:
  const Inputs& inputs() const { return data_.inputs; }
  Device& device() const { return Device::get(problem_.device); }
  MemoryTracker& memory() const { return device().memory(); }

  void fail(std::string reason) {
    if (record_.status.ok()) record_.status = {StatusCode::wrong, std::move(reason)};
  }

  /// `oom` before anything is allocated, where tensors and reference alone are too large.
  bool fits_in_memory() {
    const std::int64_t limit = options_.limits.memory_limit_mib << 20;
    const std::int64_t tensors = tensor_bytes(problem_);
    const std::int64_t reference = estimate_verifier_bytes(
        problem_, data_.generated.mask, VerifyBudget{options_.limits.verify_budget_s});
    if (limit == 0 || tensors + reference <= limit) return true;
    record_.status = {StatusCode::oom,
                      fmt::format("inputs and outputs of {} and a reference of {} "
                                  "pass the memory limit of {}",
                                  in_mib(tensors), in_mib(reference), in_mib(limit))};
    return false;
  }

  void make_plan() {
    stage_("plan");
    const auto begin = Clock::now();
    plan_ = kernel_.plan(problem_, data_.generated.mask);
    const double plan_s = seconds_since(begin);
    record_.metrics["plan_ms"] = plan_s * 1e3;
    kernel_s_ += plan_s;
  }

  void run_forward() {
    stage_("forward");
    outputs_.poison_forward();
    const auto begin = Clock::now();
    plan_->forward(outputs_.forward_args(inputs()));
    device().synchronize();
    warmed_s_ = seconds_since(begin);
    kernel_s_ += warmed_s_;
    note_memory();
    verify(Pass::forward);
  }

  void run_backward() {
    stage_("backward");
    outputs_.poison_backward();
    const auto begin = Clock::now();
    plan_->backward(outputs_.backward_args(inputs()));
    device().synchronize();
    warmed_s_ = seconds_since(begin);
    kernel_s_ += warmed_s_;
    note_memory();
    verify(Pass::backward);
  }

  /// High-water marks of what the kernel had: inputs and outputs of its pass, plan and workspace.
  void note_memory() {
    const auto peak = static_cast<double>(memory().peak_bytes() - foreign_bytes_);
    double& metric = record_.metrics["peak_bytes"];
    metric = std::max(metric, peak);
    record_.metrics["workspace_bytes"] = static_cast<double>(plan_->workspace_bytes());
  }

  void verify(Pass pass) {
    stage_("verify");
    const std::int64_t before = memory().bytes_in_use();
    const Verdict verdict = pass == Pass::forward ? check_forward() : check_backward();
    note_errors(verdict);
    if (!verdict.ok) {
      const bool own_forward = pass == Pass::forward && problem_.backward;
      fail((own_forward ? "its own forward pass: " : "") + verdict.reason);
    }
    // What the reference keeps for the next kernels is not this one's.
    foreign_bytes_ += memory().bytes_in_use() - before;
    memory().reset_peak();
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
    const auto call = [&] { backward ? plan_->backward(gradients) : plan_->forward(forward); };
    const auto prepare = [&] { backward ? outputs_.poison_backward() : outputs_.poison_forward(); };
    MeasureOptions options;
    options.mode = parse_measure_mode(case_.mode);
    options.time_limit_s = options_.limits.time_limit_s;
    options.cool_down_ms = options_.limits.cool_down_ms;
    options.warmed_s = warmed_s_;
    options.time_left_s = kShareForTiming * options_.limits.case_limit_s - kernel_s_;
    stage_("time");
    prepare();
    const Measurement measured = measure(*clock_, call, prepare, options);
    note_memory();
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
    record_.samples_ms = measured.samples_ms;
    record_.stop = measured.stop == Stop::converged ? "converged" : "time_limit";
  }

  /// No number without a check.
  void forget_times() {
    for (const char* name : {"time_ms", "tflops", "time_ci_pct"}) record_.metrics.erase(name);
    record_.samples_ms.clear();
    record_.stop.clear();
  }

  void dump() {
    stage_("dump");
    dump_cell(*options_.dump, inputs(), outputs_, data_.generated, data_.spec);
  }

  const Case& case_;
  const Problem problem_;
  const Kernel& kernel_;
  const CellOptions& options_;
  ProblemData& data_;
  DeviceClock* clock_;  ///< null for a cell that is not timed
  const StageListener& stage_;
  Record& record_;
  Outputs outputs_;
  std::unique_ptr<Plan> plan_;
  double warmed_s_ = 0;             ///< by the call that was verified last
  double kernel_s_ = 0;             ///< that the case's limit has counted so far
  std::int64_t foreign_bytes_ = 0;  ///< tracked, but not of this cell: the reference's, dout's
};

CellRunner::CellRunner(StageListener listener) : listener_(std::move(listener)) {}
CellRunner::~CellRunner() = default;

CellRunner::ProblemData& CellRunner::problem_for(const Case& c) {
  if (!problem_ || problem_->key != c.problem_key()) {
    problem_.reset();  // before the next one takes its memory
    problem_ = std::make_unique<ProblemData>(c);
  }
  return *problem_;
}

Record CellRunner::run(const Case& c, const CellOptions& options) {
  Record record;
  record.c = c;
  std::string stage = "set-up";
  const StageListener listener = [&](std::string_view next) {
    stage = next;
    listener_(next);
  };
  try {
    MemoryTracker::host().set_limit(options.limits.memory_limit_mib << 20);
    if (options.timed && !clock_) clock_ = make_device_clock(c.problem().device);
    Cell(c, options, problem_for(c), clock_.get(), listener, record).run();
  } catch (const OutOfMemory& error) {
    record.status = {StatusCode::oom, fmt::format("in {}: {}", stage, error.what())};
  } catch (const std::bad_alloc&) {
    record.status = {StatusCode::oom, fmt::format("in {}: an allocation was refused", stage)};
  } catch (const std::exception& error) {
    record.status = {StatusCode::crash, fmt::format("threw in {}: {}", stage, error.what())};
  } catch (...) {
    record.status = {StatusCode::crash, fmt::format("threw in {}, not a std::exception", stage)};
  }
  return record;
}

}  // namespace longca
