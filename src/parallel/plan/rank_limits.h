#pragma once

#include <algorithm>
#include <cstdint>

namespace longca {

/// Ranks of a plan, which may only be simulated or explained: a cell's, a scheme's factor, and the
/// GPUs that advice is for.
inline constexpr std::int64_t kMaxRanks = 1 << 20;

/// Ranks that run, a process each: those of a launch, the slots of a hostfile, a node's ranks, and
/// those of the C library, whose callers are such processes. A larger number is a mistake, as no
/// machine has so many GPUs.
inline constexpr int kMaxRunningRanks = 1 << 16;

/// Ranks on one host's CPUs, where those that are more than its cores take turns: so many for each
/// core, or kMinRanksOfHost where that is more, for schemes to be tried out on a laptop.
inline constexpr int kRanksPerCore = 8;
inline constexpr int kMinRanksOfHost = 64;

/// Max ranks on the CPUs of a host of which this process may use `cores`.
constexpr int max_ranks_of_host(int cores) {
  return std::clamp(cores, kMinRanksOfHost / kRanksPerCore, kMaxRunningRanks / kRanksPerCore) *
         kRanksPerCore;
}

}  // namespace longca
