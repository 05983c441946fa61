#pragma once

#include <cstdint>

namespace longca {

/// Ranks of a plan, which may only be simulated or explained: a cell's, a scheme's factor, and the
/// GPUs that advice is for.
inline constexpr std::int64_t kMaxRanks = 1 << 20;

/// Ranks that run, a process each: those of a launch, the slots of a hostfile, a node's ranks, and
/// those of the C library, whose callers are such processes. A larger number is a mistake, as no
/// machine has so many GPUs.
inline constexpr int kMaxRunningRanks = 1 << 16;

}  // namespace longca
