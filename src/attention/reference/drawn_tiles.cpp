#include "attention/reference/drawn_tiles.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "attention/reference/tile_mask.h"
#include "core/python_random.h"
#include "mask/tiles.h"

namespace longca {
namespace {

constexpr double kShareOfBudget = 0.25;
/// What an H200 reaches, by the FLOPs below and rounded down: in bfloat16 16384 tokens of a full
/// mask with 64 heads of 128 took 1.9 s, 32 TFLOP/s, when the GPU's reference was written. In no
/// platform's page, on purpose: all machines draw the same tiles, whose errors records hold.
constexpr double kGflopsOfBfloat16 = 30'000;
constexpr double kGflopsOfFloat32 = 12'000;
/// FLOPs per cell and dimension of the products for a pair of tiles, emulation included: 6, 8, 6
/// and 8 for O, dQ, dV and dK. Of a smaller v, its products are estimated as those of q and k.
constexpr double kFlopsPerCell = 28;

/// Non-empty pairs of tiles, mean over the heads; for block lists estimated by their area.
double tile_pairs(const Mask& mask) {
  constexpr double kCells = static_cast<double>(kTile * kTile);
  if (mask.blocks() != nullptr) return mask.mean_area() / kCells;
  return static_cast<double>(tile_runs(mask, 0, kTile, kTile).tiles());
}

}  // namespace

double estimated_seconds(const Problem& problem, const Mask& mask, VerifyBudget budget) {
  const double usual = problem.dtype == DType::float32 ? kGflopsOfFloat32 : kGflopsOfBfloat16;
  const double gflops = budget.gflops > 0 ? budget.gflops : usual;
  return tile_pairs(mask) * static_cast<double>(kTile * kTile) * kFlopsPerCell * problem.head_dim *
         problem.group_size() / (gflops * 1e9);
}

double device_seconds(VerifyBudget budget) {
  return budget.seconds * kShareOfBudget;
}

std::vector<int> draw_kv_heads(const Problem& problem, const Mask& mask, VerifyBudget budget,
                               std::uint64_t seed) {
  const double seconds = device_seconds(budget);
  const double per_head = estimated_seconds(problem, mask, budget);
  std::vector<std::int64_t> order(static_cast<std::size_t>(problem.heads_k));
  std::iota(order.begin(), order.end(), 0);
  if (per_head * problem.heads_k > seconds) {
    const double count = std::clamp(seconds / per_head, 1.0, double(problem.heads_k));
    PythonRandom(seed).shuffle(order);
    order.resize(static_cast<std::size_t>(count));
    std::ranges::sort(order);
  }
  return {order.begin(), order.end()};
}

namespace {

/// Shares of a budget that is less than the cost of one head. The passes over queries (O, dQ) cost
/// about as much as those over keys (dV, dK), kCostShare of the head each.
constexpr double kShareOfQueries = 0.5;
constexpr double kShareOfKeys = 0.125;
constexpr double kCostShare = 0.5;

std::vector<std::int32_t> first_tiles(std::int64_t count) {
  std::vector<std::int32_t> tiles(static_cast<std::size_t>(count));
  std::iota(tiles.begin(), tiles.end(), 0);
  return tiles;
}

/// `share` of `count` tiles, ascending, with the last one.
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
