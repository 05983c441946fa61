#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/problem.h"
#include "attention/reference/verify.h"
#include "mask/mask.h"

namespace longca {

/// What the reference computes and compares.
struct Selection {
  enum class Mode : std::uint8_t {
    everything,
    heads,  ///< whole KV heads with their query heads
    tiles,  ///< tiles of queries and tiles of keys, independent of each other
  };
  /// Tile `tile` (kTile tokens) of the queries of a query head, or of the keys of a KV head.
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

/// The most that the budget allows, drawn from the seed: a function of its arguments (a measured
/// rate apart). Tiles of queries get half of the budget, once; tiles of keys an eighth, for each
/// kernel.
Selection select_tiles(const Problem& problem, const Mask& mask, VerifyBudget budget,
                       std::uint64_t seed);

/// The heads that comparing a selection reads: those of its tiles, and the query heads that see its
/// keys, whose (o, lse) gradients of keys may be computed from.
CheckedHeads heads_of(const Problem& problem, const Selection& selection);

/// Tokens of the tiles selected, of `tokens` in each head.
std::int64_t tokens_in(const std::vector<Selection::Item>& items, std::int64_t tokens);
/// 1 of nothing.
double share(double part, double whole);

/// FLOPs that the cost model counts for `cells` cells of one query head, all passes.
double reference_flops(std::int64_t cells, int head_dim);

/// Speed of the reference on one CPU in GFLOP/s, float64 and the float32 emulation of the same work
/// together: measured by a small problem on the first call.
double measured_reference_gflops();

}  // namespace longca
