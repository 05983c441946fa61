#include "attention/reference/whole_heads.h"

#include <algorithm>
#include <numeric>

#include "attention/reference/tile_mask.h"
#include "core/python_random.h"
#include "mask/tiles.h"

namespace longca {
namespace {

constexpr double kShareOfBudget = 0.25;
constexpr double kGflopsOfBfloat16 = 30'000;
constexpr double kGflopsOfFloat32 = 12'000;
/// Products of a pair of tiles with those of the emulation, in FLOPs per cell and dimension: 6, 8,
/// 6 and 8 for O, dQ, dV and dK.
constexpr double kFlopsPerCell = 28;

/// Pairs of tiles that meet, mean over the heads. Of block lists by their area, which their tiles
/// fill well enough.
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
    const auto most = static_cast<double>(problem.heads_k);
    const double count = std::clamp(seconds / per_head, 1.0, most);
    PythonRandom(seed).shuffle(order);
    order.resize(static_cast<std::size_t>(count));
    std::ranges::sort(order);
  }
  return {order.begin(), order.end()};
}

}  // namespace longca
