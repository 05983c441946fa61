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

// What cells on one device and cells over ranks have in common.

namespace longca {

class RepetitionCheck;
class StateWatch;

/// The status of the exception being handled: OutOfMemory is `oom`, any other one `crash`; both
/// name `stage`.
Status current_exception_status(std::string_view stage);

/// A listener that keeps the current stage's name in `stage` and passes it on to `next`. After a
/// stage that ran a kernel's code, `watch`, if given, first checks what it left behind:
/// verification must not inherit a rounding mode. All three must outlive the listener.
StageListener keep_stage(std::string& stage, const StageListener& next, StateWatch* watch);

using SteadyClock = std::chrono::steady_clock;
double seconds_since(SteadyClock::time_point begin);

/// "512 MiB".
std::string in_mib(std::int64_t bytes);

/// FLOPs of one repetition of a pass.
double pass_flops(Pass pass, const Problem& problem, const Mask& mask);

/// From the system's random numbers: nothing in this process can predict it.
std::uint64_t unforeseeable_seed();

/// Notes how many of the checked calls gave other bits than the verified ones, if any did.
void note_bits(const RepetitionCheck& repetitions, Record& record);

/// With deterministic=1, after the repetitions of a pass: `wrong` if one gave other bits than the
/// verified ones. If all did, changed signs may alter the rounding: `expect_same_bits(verified)`,
/// which runs the pass once more on the original inputs, then decides.
void check_determinism(RepetitionCheck& repetitions,
                       const std::function<void(std::uint64_t verified)>& expect_same_bits,
                       Record& record);

/// Sets the record's status to `wrong`, unless it has failed already.
void set_wrong(Record& record, std::string reason);

/// Compares a pass's results (for a step those of both passes) with the problem's reference.
/// Records the errors, the fraction compared and, if errors are too large, `wrong`. `outputs`: of
/// the whole problem.
void verify_results(Pass pass, const Problem& problem, const Kernel& kernel,
                    const CellProblem& shared, const Outputs& outputs, Record& record);

/// How to time a case whose verified pass took `warmed_s` and whose kernel calls so far took
/// `kernel_s` together.
MeasureOptions measure_options(const Case& c, const RunLimits& limits, double warmed_s,
                               double kernel_s);

/// Records times, samples and why measuring ended. `flops`: of one repetition on one device.
void note_measurement(const Measurement& measured, double flops, Record& record);

/// Records what is known when a plan is done: its notes, the kernel's version, and the ms spent
/// compiling (0: none).
void note_plan_end(const Kernel& kernel, double compile_ms,
                   std::map<std::string, std::string> notes, Record& record);

/// What a kernel may leave on a GPU without a note: masks keep lists for their kernels.
inline constexpr std::int64_t kNotedLeftBytes = std::int64_t{64} << 20;
/// Notes that many bytes or more that were still allocated after the plan had ended.
void note_memory_left(std::int64_t bytes, Record& record);

/// Removes all that timing wrote from the record of a failed cell: no number without a check.
void forget_times(Record& record);

}  // namespace longca
