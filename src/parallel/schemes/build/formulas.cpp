#include "parallel/schemes/build/formulas.h"

#include <algorithm>
#include <span>

#include "mask/range.h"
#include "parallel/schemes/build/relays.h"
#include "parallel/schemes/build/ring.h"

namespace longca {
namespace {

constexpr std::int64_t kFloat32 = 4;

int kv_heads_per_rank(const ParallelProblem& problem, const Grid& grid) {
  return std::max(1, problem.problem.heads_k / grid.head_ways());
}

// The masks of these functions are of any head (any_head_of).

bool sees_some(const Mask& mask, Range rows, Range keys) {
  return mask.area_in(0, rows, keys) > 0;
}

/// Leaves out ranges at both ends that see none of `keys`. What sees none of them sees none of any
/// part of them: where documents see themselves only, few are left as `keys` get fewer.
std::span<const Range> trimmed(const Mask& mask, std::span<const Range> rows, Range keys) {
  while (!rows.empty() && !sees_some(mask, rows.front(), keys)) rows = rows.subspan(1);
  while (rows.size() > 1 && !sees_some(mask, rows.back(), keys)) rows = rows.first(rows.size() - 1);
  return rows;
}

/// Whether the first or the last query of some range sees all of `keys`. Sufficient; where no
/// diagonal ends inside `keys` also necessary.
bool sees_all(const Mask& mask, std::span<const Range> rows, Range keys) {
  for (const Range range : rows) {
    for (const std::int64_t row : {range.begin, range.end - 1}) {
      if (mask.area_in(0, {row, row + 1}, keys) == keys.size()) return true;
    }
  }
  return keys.size() == 1;  // the caller knows that some query sees it
}

std::int64_t count(const Mask& mask, std::span<const Range> rows, Range keys) {
  if (keys.empty()) return 0;
  rows = trimmed(mask, rows, keys);
  if (rows.empty()) return 0;
  if (sees_all(mask, rows, keys)) return keys.size();
  const std::int64_t middle = keys.begin + keys.size() / 2;
  return count(mask, rows, Range{keys.begin, middle}) + count(mask, rows, Range{middle, keys.end});
}

std::int64_t count(const Mask& mask, std::span<const Range> rows, std::span<const Range> keys) {
  if (keys.empty()) return 0;
  if (keys.size() == 1) return count(mask, rows, keys.front());
  rows = trimmed(mask, rows, {keys.front().begin, keys.back().end});
  if (rows.empty()) return 0;
  const std::size_t half = keys.size() / 2;
  return count(mask, rows, keys.first(half)) + count(mask, rows, keys.subspan(half));
}

}  // namespace

std::int64_t head_exchange_bytes(const ParallelProblem& problem, const Grid& grid, int rank,
                                 bool backward) {
  const Problem& p = problem.problem;
  const int ways = grid.head_ways();
  if (ways == 1) return 0;
  const Shard cp_rank = grid.cp_rank_shard(grid.cp_rank(rank));
  const Shard own = grid.own_shard(rank);
  const std::int64_t heads_q = p.heads_q / ways;
  const std::int64_t heads_k = kv_heads_per_rank(problem, grid);
  const std::int64_t element = p.head_dim * size_of(p.dtype);
  const std::int64_t outward = own.rows * (ways - 1);     // own rows, to every other member
  const std::int64_t home = cp_rank.tokens - own.tokens;  // the others' tokens, back to them
  if (!backward) return (outward * (heads_q + 2 * heads_k) + home * heads_q) * element;
  const std::int64_t of_keys = ways > p.heads_k ? p.head_dim * kFloat32 : element;
  const std::int64_t gradients = home * 2 * heads_k * of_keys;
  return (outward + home) * heads_q * element + gradients;
}

std::int64_t ring_bytes(const ParallelProblem& problem, const Grid& grid, int window_size, int rank,
                        bool backward) {
  const Problem& p = problem.problem;
  const RingCoordinates place =
      RingCoordinates::of(grid.cp_rank(rank), grid.cp_ranks(), window_size);
  const auto rows = [&](int cp_rank) { return grid.cp_rank_shard(cp_rank).rows; };
  // Inside a window a rank forwards all blocks but that of the next CP rank; between windows, all
  // blocks of its own index but that of the next window.
  std::int64_t keys = 0;
  for (int cp_rank = 0; cp_rank < grid.cp_ranks(); ++cp_rank) {
    const int window = cp_rank / place.size;
    const int index = cp_rank % place.size;
    if (index != (place.index + 1) % place.size) keys += rows(cp_rank);
    if (index == place.index && window != (place.window + 1) % place.windows) {
      keys += rows(cp_rank);
    }
  }
  // Gradient sums are forwarded for all blocks but the own one.
  std::int64_t gradients = 0;
  for (int cp_rank = 0; backward && cp_rank < grid.cp_ranks(); ++cp_rank) {
    if (cp_rank != grid.cp_rank(rank)) gradients += grid.cp_rank_shard(cp_rank).tokens;
  }
  return (keys * size_of(p.dtype) + gradients * kFloat32) * 2 * kv_heads_per_rank(problem, grid) *
         p.head_dim;
}

std::int64_t gather_bytes(const ParallelProblem& problem, const Grid& grid, int rank,
                          bool backward) {
  const Problem& p = problem.problem;
  const std::int64_t others = grid.cp_ranks() - 1;
  const Shard own = grid.cp_rank_shard(grid.cp_rank(rank));
  const std::int64_t keys = own.rows * others;
  const std::int64_t gradients = backward ? p.tokens_k - own.tokens : 0;
  return (keys * size_of(p.dtype) + gradients * kFloat32) * 2 * kv_heads_per_rank(problem, grid) *
         p.head_dim;
}

std::int64_t count_seen_keys(const Mask& mask, std::span<const Range> rows,
                             std::span<const Range> keys) {
  return count(any_head_of(mask), rows, keys);
}

namespace {

/// The tokens of several CP ranks, ascending.
std::vector<Range> tokens_of(const Grid& grid, Range cp_ranks) {
  std::vector<Range> tokens;
  for (std::int64_t i = cp_ranks.begin; i < cp_ranks.end; ++i) {
    const std::vector<Range> own = grid.cp_rank_shard(static_cast<int>(i)).ranges;
    tokens.insert(tokens.end(), own.begin(), own.end());
  }
  join_ranges(tokens);
  return tokens;
}

/// Own keys that go to other nodes, once for each that sees them, and keys of these that the CP
/// rank passes on, once for each other of its node that sees them.
std::int64_t relayed_keys(const ParallelProblem& problem, const Grid& grid, int node, int self) {
  const SeenKeys seen(problem.mask);
  const CastStages stages = relayed_stages(grid, seen, node);
  const NodeRelays relays(grid, seen, stages);
  std::int64_t keys = 0;
  for (int of_node = 0; of_node < stages.nodes; ++of_node) {
    if (of_node == self / node) continue;
    keys +=
        count_seen_keys(problem.mask, tokens_of(grid, relays.members(of_node)), relays.own(self));
  }
  const Range near = relays.members(self / node);
  for (int stage = 0; stage < stages.relayed; ++stage) {
    const std::vector<KeyShare> brought = relays.brought(self / node, stage);
    const KeyShare& passed = brought[static_cast<std::size_t>(self % node)];
    for (int other = static_cast<int>(near.begin); other < near.end; ++other) {
      if (other == self) continue;
      keys += count_seen_keys(problem.mask, relays.own(other), passed.shared);
    }
  }
  return keys;
}

}  // namespace

std::int64_t cast_bytes(const ParallelProblem& problem, const Grid& grid, int rank, bool backward) {
  const Problem& p = problem.problem;
  const int self = grid.cp_rank(rank);
  const std::vector<Range> own = grid.cp_rank_shard(self).ranges;
  const int node = relaying_node(problem, grid);
  std::int64_t keys = 0;
  std::int64_t gradients = 0;
  for (int cp_rank = 0; cp_rank < grid.cp_ranks(); ++cp_rank) {
    if (cp_rank == self) continue;
    const std::vector<Range> other = grid.cp_rank_shard(cp_rank).ranges;
    if (node == 1 || cp_rank / node == self / node) {
      keys += count_seen_keys(problem.mask, other, own);
    }
    if (backward) gradients += count_seen_keys(problem.mask, own, other);
  }
  if (node > 1) keys += relayed_keys(problem, grid, node, self);
  return (keys * size_of(p.dtype) + gradients * kFloat32) * 2 * kv_heads_per_rank(problem, grid) *
         p.head_dim;
}

}  // namespace longca
