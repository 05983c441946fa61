#include "parallel/plan/document_deal.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "parallel/plan/atom_areas.h"
#include "parallel/plan/atoms.h"
#include "parallel/plan/balanced_deal.h"
#include "parallel/plan/deal_cost.h"
#include "parallel/plan/part_dealer.h"
#include "parallel/plan/part_packing.h"
#include "parallel/plan/token_transfer.h"

namespace longca {
namespace {

/// Deals whose areas differ by no more than this are compared by what their cuts cost.
constexpr double kGoodImbalance = 1.02;
/// Cells (of 64 heads of 128) that a kernel computes while a token's keys and values travel.
constexpr double kCellsPerToken = 180;
/// What such a deal may cost of what chunks of one length cost, over a few positions and over more:
/// those chunks spread a long document's keys over more senders, where many positions share it.
constexpr double kWorthIt = 1.0;
constexpr double kWorthItForMore = 0.9;

/// Positions with more than this to fetch and to call, in tokens, get up to this share less area.
constexpr double kBurden = 500;
constexpr double kFavour = 0.016;

/// Rules of one overshoot are tried together, until finer ones find nothing better. More positions
/// get fewer rules: they take longer, and long documents are cut for them in any case.
constexpr int kMany = 17;
constexpr int kVeryMany = 257;
constexpr std::array kOvershoots = {0.5, 0.3, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01};
constexpr std::array kOvershootsOfMany = {0.12, 0.05, 0.02, 0.01};

constexpr std::int64_t kTileTokens = 128;
/// Atoms are cut in whole tiles, in less where a tile has more than this of a position's area.
constexpr double kGrainShare = 0.04;
constexpr std::int64_t kLeastGrain = 16;
/// Bounds the number of parts.
constexpr std::int64_t kMostAtoms = 16384;

/// The grain for a mask.
std::int64_t grain_of(const Mask& mask, const std::vector<Range>& atoms, int positions) {
  double area = 0;
  double densest = 0;
  for (const Range rows : atoms) {
    const auto of_atom = static_cast<double>(mask.area_in(0, rows, {0, mask.k_tokens()}));
    area += of_atom;
    // Rows at the end of a causal document see twice as many keys as the mean.
    densest = std::max(densest, 2 * of_atom / static_cast<double>(rows.size()));
  }
  std::int64_t grain = kTileTokens;
  const auto is_coarse = [&] {
    return grain > kLeastGrain &&
           static_cast<double>(grain) * densest * positions > kGrainShare * area;
  };
  while (grain > 1 && (is_coarse() || grain * kGrainsOfPosition * positions > mask.q_tokens()))
    grain /= 2;
  return grain;
}

/// Per overshoot.
std::vector<std::vector<DealRule>> rules_for(int positions) {
  std::vector<std::vector<DealRule>> rules;
  if (positions >= kVeryMany) return {{{0.02, 0.5, true}}};
  if (positions >= kMany) {
    for (const double overshoot : kOvershootsOfMany) {
      rules.push_back({{overshoot, 0.5, true}, {overshoot, 0.25, false}});
    }
    return rules;
  }
  for (const double overshoot : kOvershoots) {
    rules.push_back({{overshoot, 0.5, true}});
    for (const double long_part : {0.5, 0.25, 1.0}) {
      rules.back().push_back({overshoot, long_part, false});
    }
  }
  return rules;
}

struct DocumentDeal {
  std::vector<std::vector<Range>> ranges;
  double imbalance = std::numeric_limits<double>::infinity();  ///< at least kGoodImbalance
  double cost = 0;

  bool operator<(const DocumentDeal& other) const {
    return std::pair(imbalance, cost) < std::pair(other.imbalance, other.cost);
  }
};

/// When the last position ends, in tokens after the mean of areas is computed.
double end_of(const std::vector<PositionCost>& costs, const std::vector<double>& surpluses) {
  double end = 0;
  for (std::size_t p = 0; p < costs.size(); ++p) {
    end = std::max(end, costs[p].total() + surpluses[p] / kCellsPerToken);
  }
  return end;
}

DocumentDeal deal_of(const PartPacking& packing, const DealCost& cost) {
  DocumentDeal deal;
  deal.imbalance = std::max(packing.imbalance(), kGoodImbalance);
  deal.ranges = packing.ranges();
  std::vector<double> surpluses;
  for (int p = 0; p < packing.positions(); ++p) surpluses.push_back(packing.surplus(p));
  deal.cost = end_of(cost.of(deal.ranges), surpluses);
  return deal;
}

/// Moves area from positions that see keys of others, which they wait for and send gradients of, to
/// those that do not, as far as areas may differ. Returns whether there are both.
bool favour_the_burdened(PartPacking& packing, const std::vector<PositionCost>& costs) {
  std::vector<int> burdened;
  for (int p = 0; p < packing.positions(); ++p) {
    const PositionCost& cost = costs[static_cast<std::size_t>(p)];
    if (cost.received + cost.rows > kBurden) burdened.push_back(p);
  }
  const auto count = static_cast<double>(burdened.size());
  const double others = packing.positions() - count;
  if (count == 0 || others == 0) return false;
  // The others get `more`, each of these gives what adds up to that.
  const double more = std::min(kFavour, kFavour * count / others) * packing.share();
  for (const int p : burdened) packing.set_handicap(p, more + more * others / count);
  even_out_in_place(packing);
  return true;
}

/// The cheapest of the deals of good balance, else the one of best balance.
DocumentDeal best_deal(AtomAreas& atoms, int positions, const DealCost& cost) {
  DocumentDeal best;
  for (const std::vector<DealRule>& rules : rules_for(positions)) {
    const bool was_good = best.imbalance <= kGoodImbalance;
    bool is_better = false;
    const auto keep_better = [&](DocumentDeal deal) {
      if (!(deal < best)) return;
      best = std::move(deal);
      is_better = true;
    };
    for (const DealRule& rule : rules) {
      PartPacking packing(atoms, positions);
      deal_parts(packing, rule);
      if (std::max(packing.imbalance(), kGoodImbalance) > best.imbalance) continue;
      keep_better(deal_of(packing, cost));
      if (positions > kFewPositions) continue;
      if (favour_the_burdened(packing, cost.of(packing.ranges()))) {
        keep_better(deal_of(packing, cost));
      }
    }
    if (was_good && !is_better) break;
  }
  return best;
}

/// Beyond the mean.
std::vector<double> surpluses_of(const AtomAreas& atoms,
                                 const std::vector<std::vector<Range>>& dealt) {
  std::vector<double> areas;
  for (const std::vector<Range>& ranges : dealt) {
    areas.push_back(0);
    for (const Range rows : ranges) areas.back() += atoms.area(rows);
  }
  const double mean =
      std::accumulate(areas.begin(), areas.end(), 0.0) / static_cast<double>(areas.size());
  for (double& area : areas) area -= mean;
  return areas;
}

}  // namespace

std::vector<std::vector<Range>> deal_documents(const Mask& mask, int positions) {
  const std::int64_t tokens = mask.q_tokens();
  if (mask.blocks() != nullptr || tokens != mask.k_tokens()) return {};
  if (positions == 1 || tokens < positions) return {};
  const std::vector<Range> found = mask_atoms(mask, tokens / kMostAtoms);
  if (found.size() == 1) return {};
  AtomAreas atoms(mask, found, grain_of(mask, found, positions));
  const DealCost cost(mask);
  DocumentDeal best = best_deal(atoms, positions, cost);
  const auto balanced = deal_balanced(mask, positions, 0).ranges;
  const std::vector<double> surpluses = surpluses_of(atoms, balanced);
  const std::vector<double> own = surpluses_of(atoms, best.ranges);
  const double gain = *std::max_element(surpluses.begin(), surpluses.end()) -
                      *std::max_element(own.begin(), own.end());
  const double slack = (kGoodImbalance - 1) * atoms.area({0, tokens}) / positions;
  const double worth_it = positions > kFewPositions ? kWorthItForMore : kWorthIt;
  const bool is_cheaper = best.cost <= worth_it * end_of(cost.of(balanced), surpluses);
  if (gain < -slack || (gain < slack && !is_cheaper)) return {};
  return std::move(best.ranges);
}

}  // namespace longca
