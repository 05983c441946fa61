#include "simulated_against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "core/rounding.h"
#include "simulate_cells.h"

namespace longca {
namespace {

constexpr double kNear = 0.06;            ///< the share of errors up to this is reported
constexpr double kNearFastest = 0.03;     ///< a choice with a regret up to this is near the best
constexpr double kDifferentTimes = 0.02;  ///< schemes whose times differ by less have no order

/// The key of a measured case, also for the simulated one.
std::string key_in_both(Case c) {
  set_simulated_mode(c);
  c.platform.reset();
  return c.key();
}

/// What schemes are compared on.
std::string contest_of(Case c) {
  c.scheme.reset();
  c.shard.reset();
  c.factor.reset();
  return key_in_both(std::move(c));
}

/// Cells that differ in scheme, shard and factor alone.
using Contest = std::vector<const ComparedCell*>;

std::map<std::string, Contest> contests_among(std::span<const ComparedCell> cells) {
  std::map<std::string, Contest> contests;
  for (const ComparedCell& cell : cells) contests[contest_of(cell.measured.c)].push_back(&cell);
  return contests;
}

bool has_one_scheme(const Contest& contest) {
  return std::ranges::all_of(contest, [&](const ComparedCell* cell) {
    return cell->measured.c.scheme == contest.front()->measured.c.scheme;
  });
}

double metric(const Record& record, const char* name) {
  const auto found = record.metrics.find(name);
  return found == record.metrics.end() ? 0 : found->second;
}

double mean_pct(const SimulationErrors& errors) {
  return 100 * errors.sum / errors.cells;
}
double signed_pct(const SimulationErrors& errors) {
  return 100 * errors.signed_sum / errors.cells;
}
double near_pct(const SimulationErrors& errors) {
  return 100.0 * errors.near / errors.cells;
}

std::string line_of(const SimulationErrors& errors) {
  const std::string name = errors.by == "compute_ms" ? "compute_ms alone, all" : errors.name;
  return fmt::format("{:<26} {:>5}  {:>6.1f} %  {:>+6.1f} %  {:>6.1f} %  {:>+6.1f} %  {:>5.0f} %\n",
                     name, errors.cells, mean_pct(errors), signed_pct(errors), 100 * errors.p90(),
                     100 * errors.worst, near_pct(errors));
}

std::string lines_of_cells(std::span<const ComparedCell> cells) {
  std::string text =
      fmt::format("{:<22} {:<8} {:<14} {:<18} {:>5} {:>7} {:>10} {:>10} {:>8}\n", "mask", "pass",
                  "scheme", "shard", "ranks", "tokens", "simulated", "measured", "error");
  for (const ComparedCell& cell : cells) {
    const Case& c = cell.measured.c;
    text += fmt::format(
        "{:<22} {:<8} {:<14} {:<18} {:>5} {:>7} {:>7.3f} ms {:>7.3f} ms {:>+6.1f} %\n", c.mask,
        to_string(c.pass), *c.scheme, *c.shard, *c.ranks, c.tokens,
        metric(cell.simulated, "time_ms"), metric(cell.measured, "time_ms"), 100 * cell.error());
  }
  return text;
}

}  // namespace

double ComparedCell::error() const {
  return metric(simulated, "time_ms") / metric(measured, "time_ms") - 1;
}

std::vector<Record> measured_over_ranks(std::span<const Record> records) {
  std::vector<Record> chosen;
  for (Record& record : latest_records(records)) {
    const Case& c = record.c;
    if (record.status.ok() && c.scheme && !c.platform && c.device == "cuda" && *c.ranks > 1 &&
        metric(record, "time_ms") > 0) {
      chosen.push_back(std::move(record));
    }
  }
  return chosen;
}

std::vector<ComparedCell> compare_simulated(std::span<const Record> simulated,
                                            std::span<const Record> measured) {
  std::unordered_map<std::string, const Record*> by_key;
  for (const Record& record : simulated) {
    if (record.status.ok()) by_key[key_in_both(record.c)] = &record;
  }
  std::vector<ComparedCell> cells;
  for (const Record& record : measured) {
    const auto found = by_key.find(key_in_both(record.c));
    if (found != by_key.end()) cells.push_back({*found->second, record});
  }
  return cells;
}

SchemeChoice choice_of_schemes(std::span<const ComparedCell> cells) {
  SchemeChoice choice;
  for (const auto& entry : contests_among(cells)) {
    const Contest& contest = entry.second;
    if (has_one_scheme(contest)) continue;
    const auto fastest = [&](const Record ComparedCell::*side) {
      const ComparedCell& cell = **std::ranges::min_element(
          contest, {}, [&](const ComparedCell* one) { return metric(one->*side, "time_ms"); });
      return metric(cell.measured, "time_ms");
    };
    const double regret = fastest(&ComparedCell::simulated) / fastest(&ComparedCell::measured) - 1;
    ++choice.problems;
    choice.near += regret <= kNearFastest ? 1 : 0;
    choice.regret_sum += regret;
    choice.worst_regret = std::max(choice.worst_regret, regret);
  }
  return choice;
}

SchemeOrder order_of_schemes(std::span<const ComparedCell> cells) {
  SchemeOrder order;
  for (const auto& [key, contest] : contests_among(cells)) {
    for (std::size_t i = 0; i < contest.size(); ++i) {
      for (std::size_t j = i + 1; j < contest.size(); ++j) {
        const double a = metric(contest[i]->measured, "time_ms");
        const double b = metric(contest[j]->measured, "time_ms");
        if (contest[i]->measured.c.scheme == contest[j]->measured.c.scheme) continue;
        if (std::abs(a - b) <= kDifferentTimes * std::min(a, b)) continue;
        const double simulated_a = metric(contest[i]->simulated, "time_ms");
        const double simulated_b = metric(contest[j]->simulated, "time_ms");
        ++order.pairs;
        if ((a < b) == (simulated_a < simulated_b) && simulated_a != simulated_b) ++order.right;
      }
    }
  }
  return order;
}

void SimulationErrors::add(double error) {
  ++cells;
  sum += std::abs(error);
  signed_sum += error;
  if (std::abs(error) > std::abs(worst)) worst = error;
  if (std::abs(error) <= kNear) ++near;
  sizes.push_back(std::abs(error));
}

double SimulationErrors::p90() const {
  std::vector<double> sorted = sizes;
  std::ranges::sort(sorted);
  return sorted[ceil_div(9 * sorted.size(), 10) - 1];
}

std::vector<SimulationErrors> errors_of_simulated(std::span<const ComparedCell> cells) {
  std::map<std::pair<std::string, std::string>, SimulationErrors> groups;
  SimulationErrors computing{.by = "compute_ms", .name = "all"};
  SimulationErrors all{.by = "all", .name = "all"};
  for (const ComparedCell& cell : cells) {
    const Case& c = cell.measured.c;
    const auto add = [&](const std::string& by, const std::string& name) {
      groups.try_emplace({by, name}, SimulationErrors{.by = by, .name = name})
          .first->second.add(cell.error());
    };
    add("scheme", *c.scheme);
    add("pass", std::string(to_string(c.pass)));
    add("mask", c.mask);
    all.add(cell.error());
    const double measured = metric(cell.measured, "compute_ms");
    if (measured > 0) computing.add(metric(cell.simulated, "compute_ms") / measured - 1);
  }
  std::vector<SimulationErrors> errors;
  for (const auto& [key, group] : groups) errors.push_back(group);
  if (computing.cells > 0) errors.push_back(computing);
  if (all.cells > 0) errors.push_back(all);
  return errors;
}

std::string json_of_simulated(std::span<const ComparedCell> cells) {
  nlohmann::json errors = nlohmann::json::array();
  for (const SimulationErrors& group : errors_of_simulated(cells)) {
    errors.push_back({{"by", group.by},
                      {"name", group.name},
                      {"cells", group.cells},
                      {"mean_pct", mean_pct(group)},
                      {"signed_pct", signed_pct(group)},
                      {"p90_pct", 100 * group.p90()},
                      {"worst_pct", 100 * group.worst},
                      {"within_6_pct", near_pct(group)}});
  }
  const SchemeOrder order = order_of_schemes(cells);
  const SchemeChoice choice = choice_of_schemes(cells);
  const auto regret = [&](double value) {
    return choice.problems > 0 ? nlohmann::json(100 * value) : nlohmann::json(nullptr);
  };
  return nlohmann::json{{"errors", errors},
                        {"order", {{"pairs", order.pairs}, {"right", order.right}}},
                        {"choice",
                         {{"problems", choice.problems},
                          {"within_3_pct", choice.near},
                          {"mean_regret_pct", regret(choice.mean_regret())},
                          {"worst_regret_pct", regret(choice.worst_regret)}}}}
             .dump(2) +
         "\n";
}

std::string comparison_of_simulated(std::span<const ComparedCell> cells) {
  if (cells.empty()) return "no cell is both simulated and measured\n";
  std::string text = lines_of_cells(cells);
  text += fmt::format("\n{:<26} {:>5}  {:>8}  {:>8}  {:>8}  {:>8}  {:>7}\n", "error of", "cells",
                      "mean", "signed", "P90", "worst", "in 6 %");
  for (const SimulationErrors& errors : errors_of_simulated(cells)) text += line_of(errors);
  const SchemeChoice choice = choice_of_schemes(cells);
  if (choice.problems == 0) return text + "no two schemes of one problem\n";
  text += fmt::format(
      "the scheme that is simulated as the fastest is so, or within 3 % of it, in {} of {} "
      "problems ({:.0f} %); mean regret {:.1f} %, worst {:.1f} %\n",
      choice.near, choice.problems, 100.0 * choice.near / choice.problems,
      100 * choice.mean_regret(), 100 * choice.worst_regret);
  const SchemeOrder order = order_of_schemes(cells);
  if (order.pairs == 0) return text + "no two schemes that differ by more than 2 %\n";
  return text + fmt::format(
                    "order of schemes right in {} of {} pairs ({:.0f} %) that differ by "
                    "more than 2 %\n",
                    order.right, order.pairs, 100.0 * order.right / order.pairs);
}

}  // namespace longca
