#pragma once

#include <cstdint>
#include <span>

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// Closed forms of the bytes that one rank sends in a pass, from shapes and shard sizes alone. With
/// U members, C CP ranks, r rows per rank, R = U r per CP rank, s bytes per element and
/// h' = max(1, heads_k / U) KV heads per rank:
///
///   heads, forward    r (U−1) (2 heads_q/U + 2 h') d s     q, k, v to the members; o back
///   heads, backward   r (U−1) (2 heads_q/U + 2 h') d s     dout; dq, dk, dv (4 bytes for s where
///                                                          KV heads are replicated)
///   ring, forward     R (C−1) 2 h' d s                     k, v
///   ring, backward    R (C−1) 2 h' d (s + 4)               k, v; dk, dv as float32
///
///   gather, forward   r (C−1) 2 h' d s                     k, v
///   gather, backward  r (C−1) 2 h' d (s + 4)               k, v; dk, dv as float32
///   cast, forward     K 2 h' d s                           K: own keys, counted once for each
///   cast, backward    (K s + L 4) 2 h' d                   other rank that sees them; L: keys of
///                                                          others that the own queries see
///
/// Of several nodes, K counts own keys once for each other rank of the node and for each other node
/// with a rank that sees them, and keys of other nodes that the rank brings into its own once for
/// each other rank of it that sees them (relays.h). Over all ranks that is the same sum.
///
/// Where rows differ from rank to rank, sums over the actual rows replace the factors, so that the
/// forms stay exact. Padding counts where inputs travel (q, k, v, dout; not in `cast`), not where
/// results do.
std::int64_t head_exchange_bytes(const ParallelProblem& problem, const Grid& grid, int rank,
                                 bool backward);
/// `window_size`: CP ranks per window of a double ring; all of them for a plain ring.
std::int64_t ring_bytes(const ParallelProblem& problem, const Grid& grid, int window_size, int rank,
                        bool backward);

std::int64_t gather_bytes(const ParallelProblem& problem, const Grid& grid, int rank,
                          bool backward);
/// The number of `keys` that some query of `rows` sees in some head; both ascending and disjoint.
/// Found by bisection on Mask::area_in alone, independent of how plans find them.
std::int64_t count_seen_keys(const Mask& mask, std::span<const Range> rows,
                             std::span<const Range> keys);

/// Counts keys with Mask queries alone (count_seen_keys), apart from how plans find them; only
/// which keys a rank brings into its node is taken from relays.h.
std::int64_t cast_bytes(const ParallelProblem& problem, const Grid& grid, int rank, bool backward);

}  // namespace longca
