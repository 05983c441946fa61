#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/problem.h"
#include "attention/reference/verifier.h"
#include "mask/mask.h"

namespace longca {

/// The tiles that the reference computes and compares.
struct Selection {
  enum class Mode : std::uint8_t {
    everything,
    heads,  ///< some KV heads with all their query heads
    tiles,  ///< some tiles of queries and, independently, some tiles of keys
  };
  /// A tile of kTile queries of a query head, or keys of a KV head.
  struct Item {
    std::int64_t head = 0;
    std::int64_t tile = 0;
    bool operator==(const Item&) const = default;
  };

  Mode mode = Mode::everything;
  std::vector<Item> queries;  ///< for o, lse, dq; by head, then tile, unless `tiles`
  std::vector<Item> keys;     ///< for dk, dv; likewise

  bool operator==(const Selection&) const = default;
};

/// As much as the budget allows, drawn from the seed; deterministic if `budget.gflops` is given. If
/// tiles are drawn, tiles of queries get half of the budget, computed once per problem, and tiles
/// of keys an eighth, computed once per kernel.
Selection select_tiles(const Problem& problem, const Mask& mask, VerifyBudget budget,
                       std::uint64_t seed);

/// The heads of a selection's tiles, and all query heads of its KV heads, from whose (o, lse) dK
/// and dV may be computed.
CheckedHeads heads_of(const Problem& problem, const Selection& selection);

/// Number of (head, token) rows in the items, for heads of `tokens` tokens.
std::int64_t tokens_in(const std::vector<Selection::Item>& items, std::int64_t tokens);
/// part / whole, 1 if whole is 0.
double share(double part, double whole);

/// Estimated FLOPs of all passes over `cells` cells of one query head.
double reference_flops(std::int64_t cells, int head_dim);

/// GFLOP/s of the reference on one CPU (float64 and float32 emulation together), measured with a
/// small problem on the first call.
double measured_reference_gflops();

}  // namespace longca
