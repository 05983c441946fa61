#include "attention/reference/drawn_tiles.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "attention/reference/tile_mask.h"
#include "attention/reference/whole_heads.h"
#include "core/python_random.h"

namespace longca {
namespace {

/// Of a budget that does not take all passes over all tiles of a head, which cost about as much for
/// queries (O, dQ) as for keys (dV, dK).
constexpr double kShareOfQueries = 0.5;
constexpr double kShareOfKeys = 0.125;
constexpr double kCostShare = 0.5;

std::vector<std::int32_t> first_tiles(std::int64_t count) {
  std::vector<std::int32_t> tiles(static_cast<std::size_t>(count));
  std::iota(tiles.begin(), tiles.end(), 0);
  return tiles;
}

/// `share` of `count` tiles, ascending, the last among them.
std::vector<std::int32_t> draw(std::int64_t count, double share, PythonRandom& random) {
  std::vector<std::int32_t> tiles = first_tiles(count);
  const auto wanted = static_cast<std::int64_t>(share * static_cast<double>(count));
  const std::int64_t kept = std::min(count, std::max(wanted, kMinTiles));
  if (kept == 0) return tiles;
  std::vector<std::int64_t> order(tiles.begin(), tiles.end() - 1);
  random.shuffle(order);
  tiles.assign(order.begin(), order.begin() + (kept - 1));
  tiles.push_back(static_cast<std::int32_t>(count - 1));
  std::ranges::sort(tiles);
  return tiles;
}

void add_tiles(std::int64_t head, const std::vector<std::int32_t>& tiles,
               std::vector<Selection::Item>& items) {
  for (const std::int32_t tile : tiles) items.push_back({head, tile});
}

}  // namespace

DrawnTiles draw_tiles(const Problem& problem, const Mask& mask, VerifyBudget budget,
                      std::uint64_t seed) {
  DrawnTiles drawn = all_tiles(problem, draw_kv_heads(problem, mask, budget, seed));
  const double per_head = estimated_seconds(problem, mask, budget);
  const double seconds = device_seconds(budget);
  if (per_head <= seconds) return drawn;
  PythonRandom random(seed);
  const double affordable = seconds / (per_head * kCostShare);
  drawn.queries = draw(tile_count(problem.tokens_q), kShareOfQueries * affordable, random);
  drawn.keys = draw(tile_count(problem.tokens_k), kShareOfKeys * affordable, random);
  drawn.whole = std::ssize(drawn.queries) == tile_count(problem.tokens_q) &&
                std::ssize(drawn.keys) == tile_count(problem.tokens_k);
  return drawn;
}

DrawnTiles all_tiles(const Problem& problem, std::vector<int> heads_k) {
  return {std::move(heads_k), first_tiles(tile_count(problem.tokens_q)),
          first_tiles(tile_count(problem.tokens_k))};
}

Selection selection_of(const Problem& problem, const DrawnTiles& drawn) {
  Selection out;
  const bool all_heads = static_cast<int>(drawn.heads_k.size()) == problem.heads_k;
  out.mode = !drawn.whole ? Selection::Mode::tiles
             : all_heads  ? Selection::Mode::everything
                          : Selection::Mode::heads;
  const int group = problem.group_size();
  for (const int head_k : drawn.heads_k) {
    for (int i = 0; i < group; ++i) add_tiles(head_k * group + i, drawn.queries, out.queries);
    add_tiles(head_k, drawn.keys, out.keys);
  }
  return out;
}

}  // namespace longca
