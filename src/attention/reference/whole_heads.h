#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/problem.h"
#include "attention/reference/verifier.h"
#include "mask/mask.h"

namespace longca {

/// The KV heads that the reference on a GPU computes, with all their query heads: every one if the
/// budget takes them, else as many as it takes, drawn from the seed, at least one (of which
/// drawn_tiles.h then takes a part).
///
/// A budget of `seconds` of CPU time stands for a quarter of that on the device, and so 10 for 2.5
/// s: what 16384 full tokens of 64 heads need. The cost is estimated, not measured, so that the
/// choice is a function of the arguments: pairs of tiles that meet, times their FLOPs, at 30
/// TFLOP/s in bfloat16 and 12 in float32 (or `gflops` of the budget), which one H200 reaches;
/// slower devices take longer.
std::vector<int> draw_kv_heads(const Problem& problem, const Mask& mask, VerifyBudget budget,
                               std::uint64_t seed);

/// Seconds on the device that one KV head with its query heads is estimated to take, all passes.
double estimated_seconds(const Problem& problem, const Mask& mask, VerifyBudget budget);
/// Seconds on the device that a budget stands for.
double device_seconds(VerifyBudget budget);

}  // namespace longca
