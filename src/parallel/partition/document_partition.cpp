#include "parallel/partition/document_partition.h"

#include <algorithm>
#include <array>
#include <utility>

#include "parallel/partition/atoms.h"
#include "parallel/partition/balanced_partition.h"
#include "parallel/partition/part_assignment.h"
#include "parallel/partition/part_packing.h"
#include "parallel/partition/partition_cost.h"
#include "parallel/partition/time_rebalance.h"

namespace longca {
namespace {

/// These constants bound the search; none is a rate of a machine. Partitions whose areas exceed the
/// mean by no more than this are compared by price.
constexpr double kGoodImbalance = 1.02;

/// From this many CP ranks on fewer rules are tried: each takes longer, and long documents are cut
/// in any case.
constexpr int kMany = 17;
constexpr int kVeryMany = 257;
constexpr std::array kOvershoots = {0.8, 0.5, 0.3, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01};
constexpr std::array kOvershootsOfMany = {0.12, 0.05, 0.02, 0.01};

constexpr std::int64_t kTileTokens = 128;
/// Atoms are cut in whole tiles; finer where a tile has more than this share of a CP rank's area.
constexpr double kGrainShare = 0.04;
constexpr std::int64_t kMinGrain = 16;
/// Bounds the number of parts.
constexpr std::int64_t kMaxAtoms = 16384;

/// The grain at which atoms are cut, in tokens.
std::int64_t grain_of(const Mask& mask, const std::vector<Range>& atoms, int cp_ranks) {
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
    return grain > kMinGrain &&
           static_cast<double>(grain) * densest * cp_ranks > kGrainShare * area;
  };
  while (grain > 1 && (is_coarse() || grain * kGrainsPerCpRank * cp_ranks > mask.q_tokens()))
    grain /= 2;
  return grain;
}

/// Rules to try, per overshoot; the search ends where a smaller overshoot finds nothing better.
std::vector<std::vector<AssignmentRule>> rules_for(int cp_ranks) {
  std::vector<std::vector<AssignmentRule>> rules;
  if (cp_ranks >= kVeryMany) return {{{0.02, 0.5, true}}};
  if (cp_ranks >= kMany) {
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

double allowed_imbalance(int cp_ranks, PartitionAim aim) {
  const bool may_drift = cp_ranks <= kFewCpRanks && aim == PartitionAim::equal_time;
  return may_drift ? 1 + kMaxDrift : kGoodImbalance;
}

/// The cheapest well-balanced partition, else the best-balanced one; rebalanced over few CP ranks.
PricedPartition best_partition(AtomAreas& atoms, int cp_ranks, const PartitionCost& cost,
                               PartitionAim aim) {
  PricedPartition best;
  PartPacking best_packing(atoms, cp_ranks);
  const double allowed = allowed_imbalance(cp_ranks, aim);
  bool is_good = false;
  for (const std::vector<AssignmentRule>& rules : rules_for(cp_ranks)) {
    const bool was_good = is_good;
    bool is_better = false;
    for (const AssignmentRule& rule : rules) {
      PartPacking packing(atoms, cp_ranks);
      assign_parts(packing, rule);
      is_good = is_good || packing.imbalance() <= kGoodImbalance;
      if (std::max(packing.imbalance(), allowed) > best.imbalance) continue;
      PricedPartition partition(packing, cost, allowed);
      if (!(partition < best)) continue;
      best = std::move(partition);
      best_packing = std::move(packing);
      is_better = true;
    }
    if (was_good && !is_better) break;
  }
  if (cp_ranks > kFewCpRanks) return best;
  return rebalance_time(std::move(best_packing), cost, aim, allowed);
}

double max_area(const AtomAreas& atoms, const std::vector<std::vector<Range>>& assigned) {
  double most = 0;
  for (const std::vector<Range>& ranges : assigned) {
    double area = 0;
    for (const Range rows : ranges) area += atoms.area(rows);
    most = std::max(most, area);
  }
  return most;
}

}  // namespace

std::vector<std::vector<Range>> partition_documents(const Mask& mask, int cp_ranks,
                                                    PartitionAim aim,
                                                    const cost::Platform& platform,
                                                    const cost::HeadShape& shape) {
  const std::int64_t tokens = mask.q_tokens();
  if (mask.blocks() != nullptr || tokens != mask.k_tokens()) return {};
  if (cp_ranks == 1 || tokens < cp_ranks) return {};
  const std::vector<Range> found = mask_atoms(mask, tokens / kMaxAtoms);
  if (found.size() == 1) return {};
  AtomAreas atoms(mask, found, grain_of(mask, found, cp_ranks));
  const PartitionCost cost(mask, platform, shape);
  PricedPartition best = best_partition(atoms, cp_ranks, cost, aim);
  if (aim == PartitionAim::equal_time && cp_ranks <= kFewCpRanks) {
    // Equal areas are one way to equal times, which the search from elsewhere may miss.
    PricedPartition equal = best_partition(atoms, cp_ranks, cost, PartitionAim::equal_area);
    if (equal.imbalance <= best.imbalance && equal.price < best.price) best = std::move(equal);
  }
  const auto balanced = partition_balanced(mask, cp_ranks, 0).ranges;
  const double gain = max_area(atoms, balanced) - max_area(atoms, best.ranges);
  const double slack = (allowed_imbalance(cp_ranks, aim) - 1) * atoms.area({0, tokens}) / cp_ranks;
  const bool is_cheaper = best.price <= cost.times().price_of(cost.of(balanced));
  if (gain < -slack || (gain < slack && !is_cheaper)) return {};
  return std::move(best.ranges);
}

}  // namespace longca
