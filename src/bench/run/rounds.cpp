#include "bench/run/rounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "bench/compare/distributions.h"
#include "bench/compare/shift.h"
#include "bench/measure/statistics.h"
#include "bench/record/metrics.h"
#include "core/error.h"
#include "core/python_random.h"

namespace longca {
namespace {

/// Groups cases of equal key, groups and their members in order of first appearance.
template <typename KeyOf>
std::vector<std::vector<Case>> grouped(std::span<const Case> cases, KeyOf key_of) {
  std::vector<std::vector<Case>> groups;
  std::map<std::string, std::size_t> places;
  for (const Case& c : cases) {
    const auto [place, is_new] = places.try_emplace(key_of(c), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(c);
  }
  return groups;
}

template <typename Item>
void shuffle(std::vector<Item>& items, PythonRandom& random) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < items.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
  random.shuffle(order);
  std::vector<Item> shuffled;
  for (const std::int64_t i : order)
    shuffled.push_back(std::move(items[static_cast<std::size_t>(i)]));
  items = std::move(shuffled);
}

/// The key of the values that medians are of, a list by round of each; among Record::more, since
/// joining the next round is all that reads them.
constexpr const char* kRoundsMetrics = "rounds_metrics";

OverRounds over_rounds(const std::string& metric) {
  const MetricInfo* known = find_metric(metric);
  return known == nullptr ? OverRounds::mean : known->over_rounds;
}

/// A metric's values in the rounds of `earlier`. Of a record that does not list them, as one from
/// before they were kept, the joined value stands for each.
std::vector<double> values_by_round(const Record& earlier, const std::string& name) {
  const std::size_t rounds = rounds_of_record(earlier);
  const auto lists = earlier.more.find(kRoundsMetrics);
  if (lists != earlier.more.end() && lists->second.is_object() && lists->second.contains(name)) {
    const nlohmann::json& list = lists->second.at(name);
    const auto is_number = [](const nlohmann::json& value) { return value.is_number(); };
    if (list.is_array() && list.size() == rounds && std::ranges::all_of(list, is_number)) {
      return list.get<std::vector<double>>();
    }
  }
  return std::vector<double>(rounds, earlier.metrics.at(name));
}

/// The values of `joined` by round of which the metrics are medians; null where there are none.
nlohmann::json rounds_metrics(const Record& earlier, const Record& round) {
  nlohmann::json lists;
  for (const auto& [name, value] : round.metrics) {
    if (over_rounds(name) != OverRounds::median || !earlier.metrics.contains(name)) continue;
    std::vector<double> values = values_by_round(earlier, name);
    values.push_back(value);
    lists[name] = std::move(values);
  }
  return lists;
}

/// Metrics over all rounds, without those that set_times computes from the samples. A record does
/// not say how many of its rounds had a metric: a mean or a median is of all rounds or left out,
/// but for a user's own, which no round has.
std::map<std::string, double> joined_metrics(const Record& earlier, const Record& round) {
  std::map<std::string, double> metrics = earlier.metrics;
  std::erase_if(metrics, [&](const auto& metric) {
    return find_metric(metric.first) != nullptr && over_rounds(metric.first) != OverRounds::max &&
           !round.metrics.contains(metric.first);
  });
  const auto rounds = static_cast<double>(rounds_of_record(earlier));
  for (const auto& [name, value] : round.metrics) {
    const OverRounds how = over_rounds(name);
    if (how == OverRounds::max) {
      double& max = metrics.try_emplace(name, value).first->second;
      max = std::max(max, value);
    } else if (const auto joined = metrics.find(name); joined == metrics.end()) {
      continue;  // an earlier round had none
    } else if (how == OverRounds::median) {
      std::vector<double> values = values_by_round(earlier, name);
      values.push_back(value);
      joined->second = median(values);
    } else {
      joined->second = (joined->second * rounds + value) / (rounds + 1);
    }
  }
  return metrics;
}

/// Half the 95 % interval of the time over the rounds, in percent.
double interval_pct(const Rounds& rounds) {
  const std::vector<double> locations = round_locations(rounds);
  const auto n = static_cast<double>(locations.size());
  double mean = 0;
  for (const double location : locations) mean += std::log(location) / n;
  double squares = 0;
  for (const double location : locations) {
    squares += (std::log(location) - mean) * (std::log(location) - mean);
  }
  const double error = std::sqrt(squares / (n - 1) / n);
  return 100 * std::expm1(student_quantile(0.05, n - 1) * error);
}

/// Time, its interval and the rate from all samples.
void set_times(Record& record, double flops) {
  auto& metrics = record.metrics;
  metrics["time_ms"] = median(record.samples_ms);
  if (round_locations(record.rounds_ms).size() > 1) {
    metrics["time_ci_pct"] = interval_pct(record.rounds_ms);
  }
  if (flops > 0 && metrics["time_ms"] > 0) metrics["tflops"] = flops / metrics["time_ms"];
  if (metrics.contains("compute_ms") && metrics.contains("exposed_comm_ms")) {
    metrics["exposed_comm_ms"] = metrics["time_ms"] - metrics["compute_ms"];
  }
  if (metrics.contains("selection_ms") && metrics.contains("end_to_end_ms")) {
    metrics["end_to_end_ms"] = metrics["selection_ms"] + metrics["plan_ms"] + metrics["time_ms"];
  }
}

}  // namespace

void check_rounds(std::int64_t rounds) {
  if (rounds < 1 || rounds > kMaxRounds) {
    throw_input_error("--rounds {} is not from 1 to {}", rounds, kMaxRounds);
  }
}

std::size_t rounds_of_record(const Record& record) {
  if (!record.rounds_ms.empty()) return record.rounds_ms.size();
  return record.samples_ms.empty() ? 0 : 1;
}

std::vector<Case> order_of_round(std::span<const Case> cases, std::uint64_t seed, int round) {
  PythonRandom random(seed + static_cast<std::uint64_t>(round));
  std::vector<Case> ordered;
  auto by_ranks = grouped(cases, [](const Case& c) { return std::to_string(c.ranks.value_or(0)); });
  shuffle(by_ranks, random);
  for (const auto& of_ranks : by_ranks) {
    auto problems = grouped(of_ranks, [](const Case& c) { return c.problem_key(); });
    shuffle(problems, random);
    for (auto& problem : problems) {
      shuffle(problem, random);
      std::ranges::move(problem, std::back_inserter(ordered));
    }
  }
  return ordered;
}

Record with_round(const Record& earlier, const Record& round) {
  Record joined = round;
  joined.more.insert(earlier.more.begin(), earlier.more.end());
  joined.more.erase(kRoundsMetrics);
  if (!round.status.ok()) return joined;
  LONGCA_CHECK(earlier.status.ok(), "{} has failed in an earlier round", earlier.c.key());
  joined.rounds_ms = earlier.rounds_ms;
  if (joined.rounds_ms.empty() && !earlier.samples_ms.empty()) {
    joined.rounds_ms.push_back(earlier.samples_ms);
  }
  joined.rounds_ms.push_back(round.samples_ms);
  if (joined.rounds_ms.size() == 1) return joined;
  joined.samples_ms = earlier.samples_ms;
  joined.samples_ms.insert(joined.samples_ms.end(), round.samples_ms.begin(),
                           round.samples_ms.end());
  const auto rate = round.metrics.find("tflops");
  const double flops = rate == round.metrics.end() ? 0 : rate->second * round.metrics.at("time_ms");
  joined.metrics = joined_metrics(earlier, round);
  if (nlohmann::json lists = rounds_metrics(earlier, round); !lists.is_null()) {
    joined.more[kRoundsMetrics] = std::move(lists);
  }
  set_times(joined, flops);
  if (earlier.stop == "time_limit") joined.stop = earlier.stop;
  joined.notes.insert(earlier.notes.begin(), earlier.notes.end());
  for (std::size_t i = 0; i < joined.rank_times_ms.size() && i < earlier.rank_times_ms.size();
       ++i) {
    const auto rounds = static_cast<double>(rounds_of_record(earlier));
    joined.rank_times_ms[i] =
        (earlier.rank_times_ms[i] * rounds + joined.rank_times_ms[i]) / (rounds + 1);
  }
  return joined;
}

}  // namespace longca
