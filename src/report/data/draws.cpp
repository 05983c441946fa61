#include "report/data/draws.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "bench/record/origin.h"

namespace longca {
namespace {

/// The note of an averaged record that lists its seeds.
constexpr const char* kSeeds = "seeds";

/// Metrics of which the largest draw counts.
constexpr std::array<std::string_view, 10> kLargest = {
    "peak_bytes", "workspace_bytes", "device_bytes", "error_o",     "error_lse",
    "error_dq",   "error_dk",        "error_dv",     "error_dsink", "temperature_c"};

std::string key_without_seed(const Record& record) {
  Case c = record.c;
  c.seed = 0;
  return fmt::format("{}\n{}\n{}", c.key(), host_of(record), origin_of(record.env).build);
}

using Draws = std::vector<const Record*>;

/// A metric's values, if every draw has it.
std::optional<std::vector<double>> values_of(const Draws& draws, const std::string& name) {
  std::vector<double> values;
  for (const Record* draw : draws) {
    const auto found = draw->metrics.find(name);
    if (found == draw->metrics.end()) return std::nullopt;
    values.push_back(found->second);
  }
  return values;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

/// Σ a · b.
double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Standard deviation of the values in % of their mean.
double spread_pct(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = sum_of(values) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return mean > 0 ? 100 * std::sqrt(squares / (count - 1)) / mean : 0;
}

void average_metrics(const Draws& draws, Record& mean) {
  const auto count = static_cast<double>(draws.size());
  mean.metrics.clear();
  for (const auto& [name, value] : draws.front()->metrics) {
    const auto values = values_of(draws, name);
    if (!values) continue;
    const bool is_largest = std::ranges::find(kLargest, name) != kLargest.end();
    mean.metrics[name] = is_largest ? *std::ranges::max_element(*values) : sum_of(*values) / count;
  }
  mean.metrics[kDraws] = count;
  const auto times = values_of(draws, "time_ms");
  const auto rates = values_of(draws, "tflops");
  if (!times || !rates || sum_of(*times) <= 0) return;
  mean.metrics["tflops"] = dot(*times, *rates) / sum_of(*times);
  mean.metrics[kDrawsSpread] = spread_pct(*rates);
  const auto percents = values_of(draws, "time_ci_pct");
  if (!percents) return;
  double squares = 0;
  for (std::size_t i = 0; i < draws.size(); ++i)
    squares += std::pow((*percents)[i] * (*times)[i], 2);
  mean.metrics["time_ci_pct"] = std::sqrt(squares) / sum_of(*times);
}

Record mean_of(const Draws& draws) {
  Record mean = *draws.front();
  std::string seeds;
  mean.samples_ms.clear();
  mean.rounds_ms.clear();
  mean.rank_times_ms.clear();
  mean.trace.reset();
  const Record* failed = nullptr;
  bool is_shared = true;
  for (const Record* draw : draws) {
    seeds += fmt::format("{}{}", seeds.empty() ? "" : ",", draw->c.seed);
    mean.samples_ms.insert(mean.samples_ms.end(), draw->samples_ms.begin(), draw->samples_ms.end());
    if (draw->stop == "time_limit") mean.stop = draw->stop;
    if (failed == nullptr && !draw->status.ok()) failed = draw;
    is_shared = is_shared && draw->status.code == mean.status.code &&
                draw->status.reason == mean.status.reason;
    mean.notes.insert(draw->notes.begin(), draw->notes.end());
  }
  mean.notes[kSeeds] = seeds;
  average_metrics(draws, mean);
  if (failed == nullptr || is_shared) return mean;
  mean.status = failed->status;
  mean.status.reason = fmt::format("seed {}: {}", failed->c.seed, failed->status.reason);
  mean.samples_ms.clear();
  mean.stop.clear();
  return mean;
}

}  // namespace

std::vector<Record> average_draws(std::span<const Record> records) {
  std::vector<Draws> groups;
  std::unordered_map<std::string, std::size_t> places;
  for (const Record& record : records) {
    const auto [place, is_new] = places.try_emplace(key_without_seed(record), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(&record);
  }
  std::vector<Record> averaged;
  averaged.reserve(groups.size());
  for (const Draws& draws : groups) {
    averaged.push_back(draws.size() == 1 ? *draws.front() : mean_of(draws));
  }
  return averaged;
}

std::optional<std::string> axis_text(const Axis& axis, const Record& record) {
  const auto seeds = record.notes.find(kSeeds);
  const bool is_averaged = record.metrics.contains(kDraws) && seeds != record.notes.end();
  if (axis.name == "seed" && is_averaged) return seeds->second;
  return full_text(axis, record.c);
}

}  // namespace longca
