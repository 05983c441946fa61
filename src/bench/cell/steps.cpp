#include "bench/cell/steps.h"

#include <fmt/format.h>

#include <new>
#include <optional>
#include <random>
#include <utility>

#include "attention/reference/verifier.h"
#include "bench/cell/repetition_check.h"
#include "bench/run/state_watch.h"
#include "core/memory.h"

namespace longca {
namespace {

/// Share of a case's limit that timing may use, so that a slow kernel ends with few samples, not
/// with a timeout.
constexpr double kShareForTiming = 0.8;

Verdict check(Pass pass, const Kernel& kernel, const CellProblem& shared, const Outputs& outputs) {
  const bool has_lse = kernel.capabilities().returns_lse;
  if (pass == Pass::forward) {
    const ConstLseView lse(outputs.lse.view());
    return shared.reference->check_forward(outputs.o.view(), has_lse ? &lse : nullptr);
  }
  BackwardArgs args = outputs.backward_args(shared.inputs);
  if (!has_lse) args.lse.data = nullptr;
  return shared.reference->check_backward(args);
}

void note_verdict(const Verdict& verdict, Record& record) {
  const std::pair<const char*, const std::optional<double>*> errors[] = {
      {"error_o", &verdict.error_o},   {"error_lse", &verdict.error_lse},
      {"error_dq", &verdict.error_dq}, {"error_dk", &verdict.error_dk},
      {"error_dv", &verdict.error_dv}, {"error_dsink", &verdict.error_dsink}};
  for (const auto& [name, value] : errors) {
    if (*value) record.metrics[name] = **value;
  }
  record.metrics["verified_fraction"] = verdict.fraction;
}

/// Whether a kernel's code runs in that stage.
bool runs_kernels(std::string_view stage) {
  return stage == "set-up" || stage == "plan" || stage == "forward" || stage == "backward" ||
         stage == "timing" || stage == "trace" || stage == "clean-up";
}

}  // namespace

Status current_exception_status(std::string_view stage) {
  try {
    throw;
  } catch (const OutOfMemory& error) {
    return {StatusCode::oom, fmt::format("in {}: {}", stage, error.what())};
  } catch (const std::bad_alloc&) {
    return {StatusCode::oom, fmt::format("in {}: an allocation was refused", stage)};
  } catch (const std::exception& error) {
    return {StatusCode::crash, fmt::format("threw in {}: {}", stage, error.what())};
  } catch (...) {
    return {StatusCode::crash, fmt::format("threw in {}, not a std::exception", stage)};
  }
}

StageListener keep_stage(std::string& stage, const StageListener& next, StateWatch* watch) {
  return [&stage, &next, watch](std::string_view name) {
    if (watch != nullptr && runs_kernels(stage)) watch->check(stage);
    stage = name;
    next(name);
  };
}

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

std::string in_mib(std::int64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

double pass_flops(Pass pass, const Problem& problem, const Mask& mask) {
  const double forward = pass == Pass::backward ? 0 : forward_flops(problem, mask);
  return forward + (pass == Pass::forward ? 0 : backward_flops(problem, mask));
}

std::uint64_t unforeseeable_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

void check_determinism(RepetitionCheck& repetitions,
                       const std::function<void(std::uint64_t verified)>& expect_same_bits,
                       Record& record) {
  if (repetitions.other_bits() == 0) return;
  if (repetitions.same_bits() > 0) {
    return set_wrong(record, "deterministic=1, and a timed call gave gradients of other bits");
  }
  repetitions.restore();
  expect_same_bits(repetitions.verified_bits());
}

void note_bits(const RepetitionCheck& repetitions, Record& record) {
  const int others = repetitions.other_bits();
  if (others == 0) return;
  record.notes["other bits"] =
      fmt::format("{} of {} checked calls", others, others + repetitions.same_bits());
}

void set_wrong(Record& record, std::string reason) {
  if (record.status.ok()) record.status = {StatusCode::wrong, std::move(reason)};
}

void verify_results(Pass pass, const Problem& problem, const Kernel& kernel,
                    const CellProblem& shared, const Outputs& outputs, Record& record) {
  if (pass == Pass::step) {
    verify_results(Pass::forward, problem, kernel, shared, outputs, record);
    if (!record.status.ok()) return;
    pass = Pass::backward;
  }
  if (pass == Pass::forward && !kernel.capabilities().returns_lse) {
    record.notes["lse"] = "not returned";
  }
  if (pass == Pass::backward && !kernel.capabilities().returns_lse) {
    if (const std::string why = shared.reference->why_gradients_need_lse(); !why.empty()) {
      record.status = Status::unsupported("returns no LSE: " + why);
      return;
    }
  }
  const Verdict verdict = check(pass, kernel, shared, outputs);
  note_verdict(verdict, record);
  if (verdict.ok) return;
  const bool own_forward = pass == Pass::forward && problem.backward;
  set_wrong(record, (own_forward ? "its own forward pass: " : "") + verdict.reason);
}

MeasureOptions measure_options(const Case& c, const RunLimits& limits, double warmed_s,
                               double kernel_s) {
  MeasureOptions options;
  options.mode = parse_measure_mode(c.mode);
  options.time_limit_s = limits.time_limit_s;
  options.sample_budget_s = limits.sample_budget_s;
  options.cool_down_ms = limits.cool_down_ms;
  // On a GPU the verified pass also loaded code, maybe compiled it, while the clocks were low.
  if (c.problem().device == DeviceKind::cpu) options.warmed_s = warmed_s;
  options.time_left_s = kShareForTiming * limits.case_limit_s - kernel_s;
  return options;
}

void note_measurement(const Measurement& measured, double flops, Record& record) {
  record.metrics["time_ms"] = measured.median_ms;
  record.metrics["tflops"] = flops / measured.median_ms / 1e9;
  if (measured.interval) {
    record.metrics["time_ci_pct"] = measured.interval->relative_half_width() * 100;
  }
  if (!measured.held) {
    record.notes["hold"] =
        "the kernel waits on the host, or queues more than the device takes at once: launch time "
        "is in the times";
  }
  record.samples_ms = measured.samples_ms;
  record.stop = measured.stop == Stop::converged ? "converged" : "time_limit";
}

void note_plan_end(const Kernel& kernel, double compile_ms,
                   std::map<std::string, std::string> notes, Record& record) {
  if (compile_ms > 0) record.metrics["compile_ms"] = compile_ms;
  record.notes.merge(notes);
  if (std::string version = kernel.version(); !version.empty()) {
    record.notes.try_emplace("version", std::move(version));
  }
}

void note_memory_left(std::int64_t bytes, Record& record) {
  if (bytes < kNotedLeftBytes) return;
  record.notes["memory left"] = in_mib(bytes) + " were still allocated after the plan had ended";
}

void forget_times(Record& record) {
  for (const char* name :
       {"time_ms", "tflops", "time_ci_pct", "compute_ms", "exposed_comm_ms", "time_imbalance",
        "sm_clock_mhz", "power_w", "temperature_c", "gpu_processes", "host_load"}) {
    record.metrics.erase(name);
  }
  record.samples_ms.clear();
  record.rank_times_ms.clear();
  record.stop.clear();
  record.trace.reset();
}

}  // namespace longca
