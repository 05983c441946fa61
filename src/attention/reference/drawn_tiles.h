#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/problem.h"
#include "attention/reference/selection.h"
#include "attention/reference/verifier.h"
#include "mask/mask.h"

namespace longca {

/// What the reference on a GPU computes and compares: some KV heads with all their query heads, and
/// of each of these the same tiles.
struct DrawnTiles {
  std::vector<int> heads_k;           ///< ascending
  std::vector<std::int32_t> queries;  ///< tiles of every query head drawn, ascending
  std::vector<std::int32_t> keys;     ///< tiles of every KV head drawn, ascending
  bool whole = true;                  ///< all tiles of these heads
};

/// Whole heads as draw_kv_heads has them where the budget takes one. Where it does not, tiles of
/// one head, drawn from the seed: tiles of queries for half of the budget, once per problem, tiles
/// of keys for an eighth, for each kernel anew; never fewer than kMinTiles of each, and always
/// the last: lengths that no tile divides go wrong there.
DrawnTiles draw_tiles(const Problem& problem, const Mask& mask, VerifyBudget budget,
                      std::uint64_t seed);
/// So few do not fill a GPU: with fewer its time would be the same.
inline constexpr std::int64_t kMinTiles = 64;

/// All tiles of these heads.
DrawnTiles all_tiles(const Problem& problem, std::vector<int> heads_k);

/// The tiles in the order in which results are compared: by head, then tile.
Selection selection_of(const Problem& problem, const DrawnTiles& drawn);

}  // namespace longca
