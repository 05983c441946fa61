#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "advise/degrees.h"
#include "advise/evaluation.h"

namespace longca::advise {

/// {"card","device","objective","choices":[…],"excluded":[…],"unknown":[…],"find_out":[…]}, each
/// entry with the "problem" and "pass" that it answers. A choice: "rank" (from 1), "kernel",
/// "scheme", "shard", "factor", "transport", "time_ms", "low_ms", "high_ms", "peak_bytes", "basis",
/// "platform" (simulated ones), "situation", "tied", "records"; null where it has none.
nlohmann::json advice_json(const Evidence& evidence, std::span<const Advice> advice,
                           Objective objective);

/// {"card","device","gpus","layers","tokens_per_step","sequences","longest","choices":[…],
/// "excluded":[…],"unknown":[…],"find_out":[…]} as those of advice_json, each entry with its
/// "degree". The times of a choice are of all layers in a step, attention and its communication
/// alone; it has "replicas" and "kept_bytes" (per GPU, of kept_bytes for the longest sequence) too.
nlohmann::json degrees_json(const Evidence& evidence, const WeighedDegrees& weighed);

/// {"card","left_out":[{"by","all":SCORE,"kernels":[…],"masks":[…]}]}. SCORE: "cells",
/// "median_error_pct", "p90_error_pct", "coverage_pct", "choices", "mean_regret_pct",
/// "p95_regret_pct", "right_pct", "could_not_run", "no_answer"; percentages are null where there is
/// nothing to count.
nlohmann::json evaluation_json(const Evidence& evidence, std::span<const HeldOut> held_out);

}  // namespace longca::advise
