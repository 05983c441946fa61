#include "attention/reference/selection.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "attention/reference/passes.h"
#include "attention/reference/tile_mask.h"
#include "core/python_random.h"
#include "mask/list_of_head.h"
#include "mask/mask_slice.h"

namespace longca {
namespace {

// FLOPs per cell and dimension of the products for a pair of tiles: S and PV; S, dP and dQ; S, dP,
// dV and dK.
constexpr double kForwardFlops = 4;
constexpr double kQueryFlops = 6;
constexpr double kKeyFlops = 8;
/// Exponentials, loads and masks cost as much as this many additional dimensions.
constexpr double kOverheadDims = 16;
constexpr double kAllFlops = kForwardFlops + kQueryFlops + kKeyFlops;

/// Every machine reaches this rate, so what fits the budget at it needs no measurement.
constexpr double kSafeGflops = 1;

struct Costs {
  const Problem& problem;
  const Mask& mask;
  double pair_seconds_per_flop;  ///< of a pair of tiles, for one FLOP per cell and dimension

  Costs(const Problem& p, const Mask& m, double gflops)
      : problem(p),
        mask(m),
        pair_seconds_per_flop(kTile * kTile * (p.head_dim + kOverheadDims) / (gflops * 1e9)) {}

  std::int64_t mask_head(std::int64_t head_q) const {
    return list_of_head(head_q, mask.heads(), problem.heads_q);
  }

  /// Pairs of the tile and a partner tile, summed over the query heads [begin, end).
  std::int64_t pairs(TileOwner owner, std::int64_t tile, std::int64_t begin,
                     std::int64_t end) const {
    std::int64_t sum = 0;
    std::int64_t counted_head = -1;
    std::int64_t count = 0;
    for (std::int64_t head = begin; head < end; ++head) {
      if (mask_head(head) != counted_head) {
        counted_head = mask_head(head);
        count = count_partners(mask, static_cast<int>(counted_head), owner, tile);
      }
      sum += count;
    }
    return sum;
  }

  double seconds(std::int64_t pairs, double flops) const {
    return static_cast<double>(pairs) * flops * pair_seconds_per_flop;
  }
};

/// The cost of every KV head with its query heads; nothing if one alone surely exceeds the limit.
std::optional<std::vector<double>> head_costs(const Costs& costs, double limit_seconds) {
  const Problem& p = costs.problem;
  const double min_pairs = costs.mask.mean_area() / (kTile * kTile) * p.group_size();
  if (costs.seconds(static_cast<std::int64_t>(min_pairs), kAllFlops) > limit_seconds &&
      costs.mask.blocks() == nullptr) {
    return std::nullopt;  // even if no tile were partial
  }
  std::vector<double> result;
  const bool same = costs.mask.heads() == 1;
  for (std::int64_t head = 0; head < (same ? 1 : p.heads_k); ++head) {
    std::int64_t pairs = 0;
    for (std::int64_t tile = 0; tile < tile_count(p.tokens_q); ++tile) {
      pairs +=
          costs.pairs(TileOwner::queries, tile, head * p.group_size(), (head + 1) * p.group_size());
    }
    result.push_back(costs.seconds(pairs, kAllFlops));
  }
  if (same) result.resize(static_cast<std::size_t>(p.heads_k), result.front());
  return result;
}

std::vector<std::int64_t> shuffled(std::int64_t count, PythonRandom& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  return order;
}

/// KV heads drawn at random until the budget is spent, ascending.
std::vector<std::int64_t> draw_heads(const std::vector<double>& costs, double seconds,
                                     PythonRandom& random) {
  std::vector<std::int64_t> heads;
  for (const std::int64_t head : shuffled(static_cast<std::int64_t>(costs.size()), random)) {
    seconds -= costs[static_cast<std::size_t>(head)];
    if (seconds < 0) break;
    heads.push_back(head);
  }
  std::ranges::sort(heads);
  return heads;
}

void add_whole_heads(const Problem& p, const std::vector<std::int64_t>& heads_k, Selection& out) {
  for (const std::int64_t head_k : heads_k) {
    for (std::int64_t i = 0; i < p.group_size(); ++i) {
      for (std::int64_t tile = 0; tile < tile_count(p.tokens_q); ++tile) {
        out.queries.push_back({head_k * p.group_size() + i, tile});
      }
    }
    for (std::int64_t tile = 0; tile < tile_count(p.tokens_k); ++tile) {
      out.keys.push_back({head_k, tile});
    }
  }
}

/// Calls visit(KV head, tile) in random order until it returns false. The first is some head's last
/// tile, where kernels mishandle lengths that no tile size divides.
template <typename Visit>
void visit_tiles(const Problem& p, std::int64_t tiles, PythonRandom& random, const Visit& visit) {
  std::vector<std::int64_t> order = shuffled(p.heads_k * tiles, random);
  const auto last =
      std::ranges::find_if(order, [&](std::int64_t i) { return i % tiles == tiles - 1; });
  std::iter_swap(order.begin(), last);
  for (const std::int64_t i : order) {
    if (!visit(i / tiles, i % tiles)) return;
  }
}

/// Draws a query tile for all query heads of a KV head, or for one if all exceed the budget.
void draw_query_tiles(const Costs& costs, double seconds, PythonRandom& random, Selection& out) {
  const Problem& p = costs.problem;
  visit_tiles(p, tile_count(p.tokens_q), random, [&](std::int64_t head_k, std::int64_t tile) {
    const std::int64_t first = head_k * p.group_size();
    std::int64_t heads = p.group_size();
    double cost = costs.seconds(costs.pairs(TileOwner::queries, tile, first, first + heads),
                                kForwardFlops + kQueryFlops);
    if (out.queries.empty() && cost > seconds) {
      cost /= static_cast<double>(heads);
      heads = 1;
    }
    if (!out.queries.empty() && cost > seconds) return false;
    seconds -= cost;
    for (std::int64_t i = 0; i < heads; ++i) out.queries.push_back({first + i, tile});
    return true;
  });
}

void draw_key_tiles(const Costs& costs, double seconds, PythonRandom& random, Selection& out) {
  const Problem& p = costs.problem;
  visit_tiles(p, tile_count(p.tokens_k), random, [&](std::int64_t head_k, std::int64_t tile) {
    const std::int64_t first = head_k * p.group_size();
    const double cost =
        costs.seconds(costs.pairs(TileOwner::keys, tile, first, first + p.group_size()), kKeyFlops);
    if (!out.keys.empty() && cost > seconds) return false;
    seconds -= cost;
    out.keys.push_back({head_k, tile});
    return true;
  });
}

std::vector<std::int64_t> all_heads(const Problem& problem) {
  std::vector<std::int64_t> heads(static_cast<std::size_t>(problem.heads_k));
  std::iota(heads.begin(), heads.end(), 0);
  return heads;
}

Selection select_at(const Problem& problem, const Mask& mask, double seconds, double gflops,
                    std::uint64_t seed) {
  const Costs costs(problem, mask, gflops);
  PythonRandom random(seed);
  Selection selection;
  if (const auto per_head = head_costs(costs, seconds)) {
    const double total = std::accumulate(per_head->begin(), per_head->end(), 0.0);
    const auto heads =
        total <= seconds ? all_heads(problem) : draw_heads(*per_head, seconds, random);
    if (!heads.empty() || problem.tokens_q == 0 || problem.tokens_k == 0) {
      selection.mode = total <= seconds ? Selection::Mode::everything : Selection::Mode::heads;
      add_whole_heads(problem, heads, selection);
      return selection;
    }
  }
  selection.mode = Selection::Mode::tiles;
  draw_query_tiles(costs, seconds / 2, random, selection);
  draw_key_tiles(costs, seconds / 8, random, selection);
  return selection;
}

}  // namespace

CheckedHeads heads_of(const Problem& problem, const Selection& selection) {
  CheckedHeads heads;
  const std::int64_t group = problem.group_size();
  for (const auto& item : selection.queries) heads.q.push_back({item.head, item.head + 1});
  for (const auto& item : selection.keys) {
    heads.k.push_back({item.head, item.head + 1});
    heads.q.push_back({item.head * group, (item.head + 1) * group});
  }
  join_ranges(heads.q);
  join_ranges(heads.k);
  return heads;
}

std::int64_t tokens_in(const std::vector<Selection::Item>& items, std::int64_t tokens) {
  std::int64_t sum = 0;
  for (const auto& item : items) sum += std::min(kTile, tokens - item.tile * kTile);
  return sum;
}

double share(double part, double whole) {
  return whole > 0 ? part / whole : 1.0;
}

double reference_flops(std::int64_t cells, int head_dim) {
  return static_cast<double>(cells) * kAllFlops * (head_dim + kOverheadDims);
}

Selection select_tiles(const Problem& problem, const Mask& mask, VerifyBudget budget,
                       std::uint64_t seed) {
  if (budget.gflops > 0) return select_at(problem, mask, budget.seconds, budget.gflops, seed);
  Selection safe = select_at(problem, mask, budget.seconds, kSafeGflops, seed);
  if (safe.mode == Selection::Mode::everything) return safe;
  return select_at(problem, mask, budget.seconds, measured_reference_gflops(), seed);
}

namespace {

constexpr std::int64_t kTokens = 256;
constexpr int kDim = 128;

/// CPU time of this thread, unaffected by other processes.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Real>
void run_all_passes(const ReferenceProblem& problem) {
  TilePasses<Real> passes(problem);
  std::vector<Real> a(kTile * kDim), b(kTile * kDim);
  std::vector<RowStatistics<Real>> rows(tile_count(kTokens));
  for (std::int64_t tile = 0; tile < tile_count(kTokens); ++tile) {
    passes.forward(0, tile, a.data(), rows[tile]);
    passes.query_gradient(0, tile, rows[tile], a.data());
  }
  for (std::int64_t tile = 0; tile < tile_count(kTokens); ++tile) {
    passes.key_gradients(
        0, tile, [&](std::int64_t, std::int64_t query_tile) { return rows[query_tile]; }, a.data(),
        b.data());
  }
}

double measure() {
  Problem shape;
  shape.tokens_q = shape.tokens_k = kTokens;
  shape.head_dim = kDim;
  const Inputs inputs = make_inputs(shape, 0);
  const MaskSlice all{0, kTokens, 0, kTokens, MaskSliceType::full};
  const ReferenceProblem problem{shape, Mask::from_slices(kTokens, kTokens, {all}), &inputs};
  double seconds = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < 3; ++repetition) {
    const double begin = cpu_seconds();
    run_all_passes<double>(problem);
    run_all_passes<float>(problem);
    seconds = std::min(seconds, cpu_seconds() - begin);
  }
  return reference_flops(kTokens * kTokens, kDim) / seconds / 1e9;
}

}  // namespace

double measured_reference_gflops() {
  static const double gflops = measure();
  return gflops;
}

}  // namespace longca
