#pragma once

#include <cstdint>
#include <span>

#include "parallel/partition/sharding.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// How many keys of `keys` any query of `rows` sees in any head; both ascending and disjoint. By
/// questions to the mask alone: what a tile holds, halved until all or none of its keys are seen.
std::int64_t count_seen_keys(const Mask& mask, std::span<const Range> rows,
                             std::span<const Range> keys);

/// The fewest bytes that a pass must bring to or take from CP rank `rank` of a sharding if queries
/// stay with their owners: k and v of the keys that its queries see and that it does not own enter;
/// in the backward pass they enter again, and partial dk and dv of as many keys leave (as float32).
/// Schemes that move queries instead (Ulysses) can do with less.
std::int64_t least_bytes(const ParallelProblem& problem, const Sharding& sharding, int rank,
                         bool backward);

}  // namespace longca
