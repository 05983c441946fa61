#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "attention/api/kernel.h"
#include "bench/cell/problem.h"
#include "bench/cell/tensors.h"
#include "bench/measure/measurement.h"
#include "bench/record/record.h"
#include "bench/suite/suite.h"

// What a cell on one device and a cell over ranks do alike on their way to a record.

namespace longca {

class RepetitionCheck;
class StateWatch;

/// The status of the exception being handled: OutOfMemory is `oom`, any other one `crash`; both
/// name `stage`.
Status current_exception_status(std::string_view stage);

/// A listener that keeps the current stage's name in `stage` and passes it on to `next`. Where a
/// kernel's code ran, `watch`, if any, first looks at what it left behind: verification above all
/// must not round as a kernel does. All three outlive the listener.
StageListener keep_stage(std::string& stage, const StageListener& next, StateWatch* watch);

using SteadyClock = std::chrono::steady_clock;
double seconds_since(SteadyClock::time_point begin);

/// "512 MiB".
std::string in_mib(std::int64_t bytes);

/// FLOPs of one repetition of a pass.
double pass_flops(Pass pass, const Problem& problem, const Mask& mask);

/// Drawn by the system: nothing in this process can foresee it.
std::uint64_t unforeseeable_seed();

/// With deterministic=1, after the repetitions of a pass: `wrong` if one gave other bits than the
/// verified ones. Where all did, the kernel may round otherwise where signs change, and
/// `expect_same_bits(verified)` decides, which runs the pass once more on the inputs as they were.
void check_determinism(RepetitionCheck& repetitions,
                       const std::function<void(std::uint64_t verified)>& expect_same_bits,
                       Record& record);

/// Makes the record `wrong`, unless it has failed before.
void set_wrong(Record& record, std::string reason);

/// Compares a pass's results with the problem's reference, and records the errors, the fraction
/// compared and, if they are too large, `wrong`. A step's are those of both passes. `outputs` are
/// those of the whole problem.
void verify_results(Pass pass, const Problem& problem, const Kernel& kernel,
                    const CellProblem& shared, const Outputs& outputs, Record& record);

/// How to time a case, whose verified pass took `warmed_s` and all of whose kernel calls so far
/// took `kernel_s`.
MeasureOptions measure_options(const Case& c, const RunLimits& limits, double warmed_s,
                               double kernel_s);

/// Records times, samples and why measuring ended. `flops`: of one repetition on one device.
void note_measurement(const Measurement& measured, double flops, Record& record);

/// Records what is known at a plan's end: its notes, its kernel's version, and how long it
/// compiled, in ms (0: not at all).
void note_plan_end(const Kernel& kernel, double compile_ms,
                   std::map<std::string, std::string> notes, Record& record);

/// No number without a check: takes what timing wrote out of the record.
void forget_times(Record& record);

}  // namespace longca
