#pragma once

#include <cstdint>
#include <span>

#include "parallel/partition/sharding.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// The number of `keys` that some query of `rows` sees in some head; both ascending and disjoint.
/// Found by bisection on Mask::area_in alone, independent of how plans find them.
std::int64_t count_seen_keys(const Mask& mask, std::span<const Range> rows,
                             std::span<const Range> keys);

/// The minimum of bytes that CP rank `rank` must exchange in a pass if queries stay with their
/// owners: it receives k and v of the foreign keys that its queries see, and in the backward pass
/// sends partial dk and dv (float32) of as many. Schemes that move queries (Ulysses) may need less.
std::int64_t least_bytes(const ParallelProblem& problem, const Sharding& sharding, int rank,
                         bool backward);

}  // namespace longca
