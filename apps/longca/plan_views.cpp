#include "plan_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/cell/problem.h"
#include "bench/suite/scheme_axes.h"
#include "core/counted.h"
#include "core/error.h"
#include "parallel/plan/explain.h"
#include "report/plan_plot.h"

namespace longca {
namespace {

/// Roughly those of an H200 with another beside it, for the lengths of bars.
constexpr PlanRates kRates{.cells_per_ms = 1.5e11, .bytes_per_ms = 2e8};

/// The cells' distinct plans, which kernel, mode and transport do not change; both passes share
/// one.
std::vector<Case> distinct_plans(std::span<const Case> cases) {
  std::vector<Case> plans;
  std::unordered_map<std::string, std::size_t> places;
  for (const Case& c : cases) {
    Case plain = c;
    plain.kernel = plain.mode = "";
    plain.transport.reset();
    plain.pass = Pass::forward;
    const auto [place, is_new] = places.try_emplace(plain.key(), plans.size());
    if (is_new) plans.push_back(plain);
    if (c.pass != Pass::forward) plans[place->second].pass = Pass::backward;
  }
  return plans;
}

std::string title_of_case(const Case& c) {
  std::string title = fmt::format("{} over {}, {}", *c.scheme, counted(*c.ranks, "rank"), *c.shard);
  if (c.factor) title += fmt::format(", factor {}", *c.factor);
  return title + fmt::format(": {}, {}, heads {}:{}", c.mask, counted(c.tokens, "token"), c.heads_q,
                             c.heads_k);
}

/// Lines of a plan's explanation, by those of rank 0.
std::int64_t estimate_lines(const Case& c, int ranks_per_node) {
  const ParallelProblem problem = parallel_problem(c, case_mask(c), ranks_per_node);
  const Scheme& scheme = find_scheme(*c.scheme);
  if (!scheme.supports(problem).ok()) return 1;
  const std::string text = explain(scheme.plan(problem, 0), c.head_dim, c.dtype);
  return problem.ranks * std::ranges::count(text, '\n');
}

/// Says on stderr how much will be printed. Throws InputError if it is more than anybody reads.
void announce_lines(std::span<const Case> plans, int ranks_per_node) {
  constexpr std::int64_t kMaxPrinted = 1 << 16;  ///< ranks of all plans
  std::int64_t ranks = 0;
  for (const Case& c : plans) ranks += *c.ranks;
  const std::string amount =
      fmt::format("{} of {} in all", counted(plans.size(), "plan"), counted(ranks, "rank"));
  if (ranks > kMaxPrinted) {
    throw_input_error("--explain: too much to print: {}, and at most {} ranks", amount,
                      kMaxPrinted);
  }
  std::int64_t lines = 0;
  for (const Case& c : plans) {
    lines += 2 + estimate_lines(c, ranks_per_node);
    refuse_too_many_lines(amount, lines);
  }
  fmt::print(stderr, "longca: {}: about {} lines\n", amount, lines);
}

}  // namespace

void refuse_too_many_lines(std::string_view amount, std::int64_t lines) {
  constexpr std::int64_t kMaxLines = 1'000'000;
  if (lines <= kMaxLines) return;
  throw_input_error("--explain: too much to print: {}, more than {} lines", amount, kMaxLines);
}

void explain_plans(std::span<const Case> cases, int ranks_per_node) {
  const std::vector<Case> plans = distinct_plans(cases);
  announce_lines(plans, ranks_per_node);
  bool first = true;
  for (const Case& c : plans) {
    fmt::print("{}{}\n", first ? "" : "\n", title_of_case(c));
    first = false;
    const ParallelProblem problem = parallel_problem(c, case_mask(c), ranks_per_node);
    const Scheme& scheme = find_scheme(*c.scheme);
    if (const Support support = scheme.supports(problem); !support.ok()) {
      fmt::print("{}: {}\n", to_string(support.code), support.reason);
      continue;
    }
    for (int rank = 0; rank < problem.ranks; ++rank) {
      fmt::print("{}", explain(scheme.plan(problem, rank), c.head_dim, c.dtype));
    }
  }
}

void plot_plan_of(std::span<const Case> cases, int ranks_per_node, const std::string& file) {
  const std::vector<Case> distinct = distinct_plans(cases);
  if (distinct.size() > 1) {
    throw_input_error("--plot draws one plan, and these cells have {}: choose one with -a",
                      distinct.size());
  }
  const Case& c = distinct.front();
  const ParallelProblem problem = parallel_problem(c, case_mask(c), ranks_per_node);
  const Scheme& scheme = find_scheme(*c.scheme);
  if (const Support support = scheme.supports(problem); !support.ok()) {
    throw InputError(support.reason);
  }
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < problem.ranks; ++rank) plans.push_back(scheme.plan(problem, rank));
  plot_plan(plans, c.head_dim, c.dtype, kRates, title_of_case(c), file);
}

}  // namespace longca
