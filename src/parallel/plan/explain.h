#pragma once

#include <cstdint>
#include <string>

#include "parallel/plan/plan.h"

namespace longca {

/// A rank's plan for people: a line about its buffers, one per note, and per pass a line of sums
/// and one per step: what is computed (rows × keys, cells of one head, shape of the mask), what
/// travels (pattern, tensors, bytes, ranks), and which steps' computing may hide it. Empty steps
/// are left out.
std::string explain(const RankPlan& plan, int head_dim, DType dtype);

/// The op's step, and what an op of attention computes: "step 3 (4096 × 4096, 17 slices)".
std::string name_step(const RankPlan& plan, const Op& op);

/// "512 B", "1.5 KiB", "64 MiB".
std::string plan_bytes(std::int64_t bytes);
/// Cells: "78", "134.2 M".
std::string plan_cells(double cells);

}  // namespace longca
