#include "simulated_advice.h"

#include <algorithm>
#include <set>
#include <utility>

#include "advise/rank_advisor.h"

namespace longca {
namespace {

/// The choice that one variant is on the cluster; why there is none in `why`.
std::optional<advise::Choice> simulated_choice(const Case& c, const simulate::Cluster& cluster,
                                               const MeasuredRates& rates, Status& why) {
  Record record;
  simulate_cell(c, cluster, rates, {}, record);
  if (!record.status.ok()) {
    why = record.status;
    return std::nullopt;
  }
  const double time_ms = record.metrics.at("time_ms");
  const bool by_page = c.kernel == "slice" && slice_is_of_page(c) && !has_fixed_order(c);
  const double page = cluster.error.p90;
  const double off = by_page ? page : std::max(page, cluster.error_by_rates.p90);
  return advise::Choice{.c = c,
                        // The error is simulated over measured, less 1.
                        .time_ms = {time_ms, time_ms / (1 + off), time_ms / (1 - off)},
                        .basis = advise::Basis::simulated};
}

void exclude(const Case& c, const std::string& reason, advise::Advice& advice) {
  const std::string name = advise::name_over_ranks(c);
  const auto same = [&](const advise::Refusal& known) {
    return known.kernel == name && known.reason == reason;
  };
  if (std::ranges::none_of(advice.excluded, same)) advice.excluded.push_back({name, reason});
}

/// The kernels with their schemes of which the answer knows something.
std::set<std::string> names_of(const advise::Advice& advice) {
  std::set<std::string> names;
  for (const advise::Choice& choice : advice.choices) {
    names.insert(advise::name_over_ranks(choice.c));
  }
  for (const advise::Refusal& excluded : advice.excluded) names.insert(excluded.kernel);
  return names;
}

}  // namespace

std::optional<simulate::Cluster> cluster_of_card(const std::string& card, std::int64_t ranks) {
  const auto order = [](const simulate::Cluster& cluster) {
    return std::pair(cluster.error.p90, cluster.gpus());
  };
  std::optional<simulate::Cluster> best;
  for (const std::string& name : simulate::cluster_names()) {
    simulate::Cluster cluster = simulate::load_cluster(name);
    if (!advise::card_is_named(card, cluster.card) || cluster.gpus() < ranks) continue;
    if (!best || order(cluster) < order(*best)) best = std::move(cluster);
  }
  return best;
}

void add_simulated_choices(const simulate::Cluster& cluster, const MeasuredRates& rates,
                           const std::set<std::string>& files, std::span<const Case> cells,
                           const advise::AdviceOptions& options, advise::Advice& advice,
                           Transport transport) {
  if (options.objective == advise::Objective::memory) {
    if (!advice.unknown.empty()) {
      advice.unknown = {
          {"every scheme", "memory is measured, not simulated, and no record has it"}};
    }
    return;
  }
  const std::set<std::string> recorded = names_of(advice);
  std::set<std::string> seen;
  bool none_can = recorded.empty();
  for (Case c : cells) {
    if (options.kernels.empty()) c.kernel = "slice";
    c = simulated_case(std::move(c), cluster, transport);
    if (recorded.contains(advise::name_over_ranks(c)) || !seen.insert(c.key()).second) continue;
    Status why;
    if (std::string lacking = advise::why_not_needed(c, options); !lacking.empty()) {
      why = Status::unsupported(std::move(lacking));
    }
    auto choice = why.ok() ? simulated_choice(c, cluster, rates, why) : std::nullopt;
    if (!choice) {
      exclude(c, why.reason, advice);
      none_can = none_can && why.code == StatusCode::unsupported;
      continue;
    }
    if (rates.has(c)) choice->files = files;
    advice.choices.push_back(std::move(*choice));
  }
  if (none_can && advice.choices.empty() && !seen.empty()) {
    advice.unknown.clear();
    advice.find_out.clear();
  }
  if (advice.choices.empty()) return;
  advice.unknown.clear();
  advise::rank_choices(advice.choices, options.objective);
}

}  // namespace longca
