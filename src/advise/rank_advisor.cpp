#include "advise/rank_advisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/suite/axes.h"
#include "bench/suite/scheme_axes.h"
#include "core/counted.h"
#include "report/data/repeat_command.h"
#include "report/format.h"
#include "simulate/cluster.h"

namespace longca::advise {
namespace {

/// The case of the pass, without what makes problems equal.
std::string variant_key(Case c) {
  c.pass = Pass::forward;
  c.deterministic.reset();
  return without_idle_seed(std::move(c)).key();
}

/// The cells of one variant, by pass.
struct Variant {
  std::map<Pass, const EvidenceCell*> passes;

  const EvidenceCell* at(Pass pass) const {
    const auto found = passes.find(pass);
    return found == passes.end() ? nullptr : found->second;
  }
};

/// `problem_key`: of the problem without an idle seed.
bool is_of_problem(const Case& c, const Case& problem, const std::string& problem_key) {
  return c.scheme && without_idle_seed(c).problem_key() == problem_key && c.mode == problem.mode &&
         c.deterministic.value_or(0) ==
             (c.pass == Pass::forward ? 0 : problem.deterministic.value_or(0));
}

/// Scheme, shard, factor and transport of a cell.
using VariantOfScheme =
    std::tuple<std::string, std::string, std::optional<int>, std::optional<std::string>>;

VariantOfScheme variant_of(const Case& c) {
  return {c.scheme.value_or(""), c.shard.value_or(""), c.factor, c.transport};
}

/// The transport over more ranks than a node has GPUs, where `peer` carries nothing.
std::optional<std::string> runnable_transport(const Case& c) {
  const bool leaves_node = c.device == "cuda" && c.ranks.value_or(1) > kRanksPerNode;
  return leaves_node && c.transport == "peer" ? "nccl" : c.transport;
}

/// Values of the axes shard, factor and transport; none of an axis: it is not named.
struct AxisLists {
  std::vector<std::string> shards;
  std::vector<int> factors;
  std::vector<std::string> transports;
};

/// The variants that a command with these lists runs of each scheme.
std::set<VariantOfScheme> variants_of(const Case& problem, const std::set<std::string>& schemes,
                                      const AxisLists& lists) {
  const auto or_default = [](const auto& values, const auto& standard) {
    return values.empty() ? standard : values;
  };
  const auto shards =
      or_default(lists.shards, std::vector{std::string(kPublishedShard), std::string(kBestShard)});
  std::vector<std::optional<int>> factors(lists.factors.begin(), lists.factors.end());
  std::vector<std::optional<std::string>> transports(lists.transports.begin(),
                                                     lists.transports.end());
  factors = or_default(factors, std::vector<std::optional<int>>(1));
  transports = or_default(transports, std::vector<std::optional<std::string>>(1));
  std::set<VariantOfScheme> variants;
  Case c = problem;
  for (const std::string& scheme : schemes) {
    c.scheme = scheme;
    for (const std::string& shard : shards) {
      for (const auto& factor : factors) {
        for (const auto& transport : transports) {
          c.shard = shard;
          c.factor = factor;
          c.transport = transport;
          variants.insert(variant_of(canonical(c)));
        }
      }
    }
  }
  return variants;
}

/// The values of one axis in the order in which they are tried: one alone is named, several are
/// where the axis's own do not stand for them.
template <typename Value>
std::vector<std::vector<Value>> lists_to_try(const std::set<Value>& values) {
  const std::vector<Value> named(values.begin(), values.end());
  if (named.size() == 1) return {named, {}};
  return {{}, named};
}

/// The shards that each of the schemes is asked for with.
std::vector<std::string> shards_of_all(const std::set<std::string>& schemes,
                                       const std::set<VariantOfScheme>& asked) {
  std::map<std::string, std::set<std::string>> schemes_by_shard;
  for (const auto& [scheme, shard, factor, transport] : asked) {
    schemes_by_shard[shard].insert(scheme);
  }
  std::vector<std::string> shards;
  for (const auto& [shard, with_it] : schemes_by_shard) {
    if (with_it == schemes) shards.push_back(shard);
  }
  return shards;
}

/// The lists by which a command runs the asked variants and no others; those of all values where
/// no lists do. A scheme without a factor takes none, and `best` is another shard for each.
AxisLists lists_of(const Case& problem, const std::set<std::string>& schemes,
                   const std::set<VariantOfScheme>& asked) {
  std::set<std::string> shards, transports;
  std::set<int> factors;
  for (const auto& [scheme, shard, factor, transport] : asked) {
    shards.insert(shard);
    if (factor) factors.insert(*factor);
    if (transport) transports.insert(*transport);
  }
  const std::vector<std::string> named_transports(transports.begin(), transports.end());
  auto shards_to_try = lists_to_try(shards);
  for (const std::string_view kind : {kBestShard, kPublishedShard}) {
    shards_to_try.push_back({std::string(kind)});
    shards_to_try.push_back(shards_of_all(schemes, asked));
    shards_to_try.back().emplace_back(kind);
  }
  for (const auto& shard : shards_to_try) {
    for (const auto& factor : lists_to_try(factors)) {
      for (const auto& transport : {std::vector<std::string>{}, named_transports}) {
        AxisLists lists{shard, factor, transport};
        if (variants_of(problem, schemes, lists) == asked) return lists;
      }
    }
  }
  return {{shards.begin(), shards.end()}, {factors.begin(), factors.end()}, named_transports};
}

template <typename Values>
std::string axis_option(std::string_view axis, const Values& values) {
  return std::ranges::empty(values) ? "" : fmt::format(" -a {}={}", axis, fmt::join(values, ","));
}

/// The schemes that were asked for, and how they run, as arguments. Where nothing was asked for,
/// `cp` runs what was weighed anyway, but for what carries the messages.
std::string scheme_options(const Case& problem, std::span<const Case> allowed) {
  std::set<std::string> schemes;
  std::set<VariantOfScheme> asked;
  for (Case c : allowed) {
    if (!c.scheme) continue;
    c.transport = runnable_transport(c);
    schemes.insert(*c.scheme);
    asked.insert(variant_of(c));
  }
  if (schemes.empty()) {
    const auto transport = runnable_transport(problem);
    return transport == problem.transport ? "" : " -a transport=" + *transport;
  }
  const AxisLists lists = lists_of(problem, schemes, asked);
  return axis_option("scheme", schemes) + axis_option("shard", lists.shards) +
         axis_option("factor", lists.factors) + axis_option("transport", lists.transports);
}

/// The kernels that were weighed, as an argument: on GPUs `slice` unless others were asked for, on
/// CPUs those of the suite.
std::string kernel_options(const AdviceOptions& asked, DeviceKind device) {
  std::set<std::string> kernels(asked.kernels.begin(), asked.kernels.end());
  if (kernels.empty() && device == DeviceKind::cuda) kernels = {"slice"};
  return axis_option("kernel", kernels);
}

/// GPUs of the largest known platform of this card; nothing if none is.
std::optional<std::int64_t> max_gpus_of_card(const std::string& card) {
  std::optional<std::int64_t> gpus;
  for (const std::string& name : simulate::cluster_names()) {
    const simulate::Cluster cluster = simulate::load_cluster(name);
    if (card_is_named(card, cluster.card)) gpus = std::max(gpus.value_or(0), cluster.gpus());
  }
  return gpus;
}

/// Why nothing is known over so many ranks without a record: also what keeps them from being
/// simulated on a platform of the card.
std::string why_unknown(const std::string& card, int ranks) {
  std::string reason = "no record over so many ranks of this problem";
  const auto gpus = max_gpus_of_card(card);
  if (gpus && *gpus < ranks) {
    reason += fmt::format(", and no known platform of {} has more than {} to simulate {} ranks on",
                          card, counted(*gpus, "GPU"), ranks);
  }
  return reason;
}

/// Adds the variant's choice, or why there is none; nothing if a pass was not measured. Returns
/// whether it is excluded.
bool add_variant(const Variant& variant, const Case& problem, Advice& advice) {
  std::vector<Pass> passes{problem.pass};
  if (problem.pass == Pass::step && variant.at(Pass::step) == nullptr) {
    passes = {Pass::forward, Pass::backward};
  }
  std::optional<Choice> whole;
  for (const Pass pass : passes) {
    const EvidenceCell* cell = variant.at(pass);
    if (cell == nullptr) return false;
    if (!cell->status.ok()) {
      advice.excluded.push_back({name_over_ranks(cell->c), failure_text(*cell)});
      return true;
    }
    if (!cell->time_ms) return false;
    Choice part = measured_choice(*cell);
    Case step = cell->c;
    step.pass = problem.pass;
    whole = whole ? step_of(step, *whole, part) : std::move(part);
  }
  advice.choices.push_back(std::move(*whole));
  return false;
}

}  // namespace

std::string name_over_ranks(const Case& c) {
  return c.kernel + " with " + c.scheme.value_or("");
}

Advice advise_over_ranks(const Evidence& evidence, const Case& problem,
                         std::span<const Case> allowed, const AdviceOptions& options) {
  Advice advice{.problem = problem};
  std::set<std::string> wanted;
  for (const Case& c : allowed) wanted.insert(variant_key(c));
  std::map<std::string, Variant> variants;
  const std::string problem_key = without_idle_seed(problem).problem_key();
  for (const EvidenceCell& cell : evidence.cells()) {
    if (!is_of_problem(cell.c, problem, problem_key)) continue;
    const std::string key = variant_key(cell.c);
    if (!wanted.empty() && !wanted.contains(key)) continue;
    variants[key].passes[cell.c.pass] = &cell;
  }
  std::set<std::string> excluded;
  for (const auto& [key, variant] : variants) {
    const EvidenceCell& first = *variant.passes.begin()->second;
    const std::string lacking = why_not_needed(first.c, options);
    if (!lacking.empty()) {
      advice.excluded.push_back({name_over_ranks(first.c), lacking});
      excluded.insert(key);
    } else if (add_variant(variant, problem, advice)) {
      excluded.insert(key);
    }
  }
  if (options.objective == Objective::memory) {
    std::erase_if(advice.choices, [](const Choice& choice) { return !choice.peak_bytes; });
  }
  rank_choices(advice.choices, options.objective);
  const bool is_impossible = !wanted.empty() && std::ranges::includes(excluded, wanted);
  if (advice.choices.empty() && !is_impossible) {
    advice.unknown.push_back({excluded.empty() ? "every scheme" : "what is not named above",
                              why_unknown(evidence.card().name, problem.ranks.value_or(1))});
    advice.find_out = command_over_ranks(problem, allowed, options);
  }
  return advice;
}

std::string command_over_ranks(const Case& problem, std::span<const Case> allowed,
                               const AdviceOptions& options) {
  Record record;
  record.c = problem;
  const DeviceKind device = problem.problem().device;
  const bool is_ordered = problem.pass != Pass::forward && problem.deterministic.value_or(0) != 0;
  // `cp` without a suite measures bursts.
  return "longca cp" + repeat_command(record).problem +
         " -a pass=" + std::string(longca::to_string(problem.pass)) +
         (is_ordered ? " -a deterministic=1" : "") +
         (problem.mode == "burst" ? "" : " -a mode=" + problem.mode) +
         kernel_options(options, device) + scheme_options(problem, allowed) +
         plugin_options(options.kernels, device);
}

}  // namespace longca::advise
