#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/problem.h"
#include "attention/reference/selection.h"
#include "attention/reference/verifier.h"
#include "mask/mask.h"

namespace longca {

/// The tiles that the GPU reference computes and compares: the same tiles of every drawn KV head
/// and of all their query heads.
struct DrawnTiles {
  std::vector<int> heads_k;           ///< ascending
  std::vector<std::int32_t> queries;  ///< tiles of every query head drawn, ascending
  std::vector<std::int32_t> keys;     ///< tiles of every KV head drawn, ascending
  bool whole = true;                  ///< all tiles of these heads
};

/// Whole heads by draw_kv_heads if the budget allows one. If not, tiles of one head, drawn from the
/// seed: tiles of queries for half of the budget, computed once per problem, and tiles of keys for
/// an eighth, computed once per kernel. At least kMinTiles of each and always the last one, where
/// kernels mishandle lengths that no tile size divides.
DrawnTiles draw_tiles(const Problem& problem, const Mask& mask, VerifyBudget budget,
                      std::uint64_t seed);
/// Fewer tiles would not fill a GPU, and so save no time.
inline constexpr std::int64_t kMinTiles = 64;

/// All tiles of these heads.
DrawnTiles all_tiles(const Problem& problem, std::vector<int> heads_k);

/// The same as a Selection, by head, then tile.
Selection selection_of(const Problem& problem, const DrawnTiles& drawn);

/// The KV heads that the GPU reference computes, ascending: all if the budget allows, else as many
/// as it allows, but at least one, drawn from the seed.
///
/// `budget.seconds` of CPU time buy a quarter of that on the device: the default of 10 s buys 2.5
/// s, which 16384 tokens of a full mask with 64 heads need. The cost is estimated, so that the
/// choice is deterministic: non-empty pairs of tiles times their FLOPs, at the budget's `gflops` or
/// else at the 30 TFLOP/s in bfloat16 and 12 in float32 that an H200 reaches.
std::vector<int> draw_kv_heads(const Problem& problem, const Mask& mask, VerifyBudget budget,
                               std::uint64_t seed);

/// Estimated seconds on the device of all passes for one KV head with its query heads.
double estimated_seconds(const Problem& problem, const Mask& mask, VerifyBudget budget);
/// Seconds on the device that a budget buys.
double device_seconds(VerifyBudget budget);

}  // namespace longca
