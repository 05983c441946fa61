#include "bench/compare/compare_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "bench/compare/environment_changes.h"
#include "bench/record/origin.h"
#include "core/counted.h"
#include "core/error.h"

namespace longca {
namespace {

std::optional<double> metric(const Record& record, const std::string& name) {
  const auto found = record.metrics.find(name);
  if (found == record.metrics.end()) return std::nullopt;
  return found->second;
}

/// By how much a metric must change to be worth a line: the larger ÷ the smaller, and the
/// difference.
struct Tolerance {
  const char* metric;
  double ratio;
  double difference;
};
// Memory is counted, and equal from run to run. Errors are of sums in another order. A plan is made
// once, so that its time is one sample.
constexpr Tolerance kTolerances[] = {{"peak_bytes", 1.01, 1 << 16},
                                     {"workspace_bytes", 1.01, 1 << 16},
                                     {"plan_ms", 2, 1},
                                     {"error_o", 1.5, 0},
                                     {"error_lse", 1.5, 1e-6},
                                     {"error_dq", 1.5, 0},
                                     {"error_dk", 1.5, 0},
                                     {"error_dv", 1.5, 0},
                                     {"error_dsink", 1.5, 0}};

std::vector<MetricChange> changes_of(const Record& base, const Record& next) {
  std::vector<MetricChange> changes;
  for (const auto& [name, ratio, difference] : kTolerances) {
    const auto was = metric(base, name);
    const auto is = metric(next, name);
    if (!was || !is) continue;
    const auto [low, high] = std::minmax(*was, *is);
    if (high > low * ratio && high - low > difference) changes.push_back({name, *was, *is});
  }
  return changes;
}

/// The records of one key; nullptr where a file has none.
struct Pair {
  const Record* base = nullptr;
  const Record* next = nullptr;

  bool in_both() const { return base != nullptr && next != nullptr; }
  bool ok_in_both() const { return in_both() && base->status.ok() && next->status.ok(); }
  const Record& any() const { return next != nullptr ? *next : *base; }
};

/// Times of a GPU are its own events, whatever the host does.
bool is_busy(const Record& record) {
  if (record.c.device != "cpu") return false;
  const auto load = record.metrics.find("host_load");
  return load != record.metrics.end() && load->second > kBusyHost;
}

std::vector<Pair> match(std::span<const Record> base, std::span<const Record> next) {
  std::vector<Pair> pairs;
  std::unordered_map<std::string, std::size_t> places;
  for (const Record& record : base) {
    places.emplace(record.c.key(), pairs.size());
    pairs.push_back({&record, nullptr});
  }
  for (const Record& record : next) {
    const auto [place, is_new] = places.try_emplace(record.c.key(), pairs.size());
    if (is_new) pairs.emplace_back();
    pairs[place->second].next = &record;
  }
  return pairs;
}

void refuse_other_machines(std::span<const Pair> pairs) {
  for (const Pair& pair : pairs) {
    if (!pair.in_both()) continue;
    const std::string was = processor_of_case(*pair.base);
    const std::string is = processor_of_case(*pair.next);
    if (was.empty() || is.empty() || was == is) continue;
    throw_input_error(
        "BASE was measured on {} and NEW on {}: add --across to compare them all the same", was,
        is);
  }
}

CellVerdict verdict_of(const Pair& pair, const std::optional<TimeRatio>& time) {
  if (pair.next == nullptr) return CellVerdict::only_base;
  if (pair.base == nullptr) return CellVerdict::only_new;
  if (!pair.ok_in_both()) {
    if (pair.base->status.ok()) return CellVerdict::broken;
    if (pair.next->status.ok()) return CellVerdict::fixed;
    return pair.base->status.code == pair.next->status.code ? CellVerdict::same
                                                            : CellVerdict::unclear;
  }
  if (!time) return CellVerdict::unclear;
  switch (time->change) {
    case Change::same:
      return CellVerdict::same;
    case Change::faster:
      return CellVerdict::faster;
    case Change::slower:
      return CellVerdict::slower;
    default:
      return CellVerdict::unclear;
  }
}

CellComparison compare_cell(const Pair& pair, const std::optional<TimeRatio>& time) {
  CellComparison cell;
  cell.c = pair.any().c;
  cell.key = cell.c.key();
  cell.verdict = verdict_of(pair, time);
  cell.time = time;
  if (pair.base != nullptr) {
    cell.base_status = pair.base->status.code;
    if (pair.base->status.ok()) cell.base_ms = metric(*pair.base, "time_ms");
  }
  if (pair.next != nullptr) {
    cell.next_status = pair.next->status.code;
    cell.reason = pair.next->status.reason;
    if (pair.next->status.ok()) cell.next_ms = metric(*pair.next, "time_ms");
  }
  if (!pair.ok_in_both()) return cell;
  cell.changes = changes_of(*pair.base, *pair.next);
  const auto was = metric(*pair.base, "sm_clock_mhz");
  const auto is = metric(*pair.next, "sm_clock_mhz");
  if (time && was && is && *was > 0 && *is > 0) cell.clock_ratio = time->ratio * (*is / *was);
  return cell;
}

/// The ratios of pairs that are ok in both; nothing for the others.
std::vector<std::optional<TimeRatio>> ratios_of(std::span<const Pair> pairs, double min_effect) {
  std::vector<TimePair> times;
  for (const Pair& pair : pairs) {
    if (pair.ok_in_both()) times.push_back({rounds_of(*pair.base), rounds_of(*pair.next)});
  }
  const std::vector<std::optional<TimeRatio>> answers = compare_times(times, min_effect);
  std::vector<std::optional<TimeRatio>> ratios;
  auto answer = answers.begin();
  for (const Pair& pair : pairs) {
    ratios.push_back(pair.ok_in_both() ? *answer++ : std::nullopt);
  }
  return ratios;
}

/// Why there is nothing to say of times, though files were compared; "" where there is.
std::string note_of(std::span<const Pair> pairs, std::span<const std::optional<TimeRatio>> ratios) {
  if (std::ranges::none_of(pairs, &Pair::in_both)) {
    const auto base =
        std::ranges::count_if(pairs, [](const Pair& pair) { return pair.base != nullptr; });
    return fmt::format("BASE has {} and NEW has {}, and none is in both", counted(base, "cell"),
                       std::ssize(pairs) - base);
  }
  const auto changes_status = [](const Pair& pair) {
    return pair.in_both() && pair.base->status.ok() != pair.next->status.ok();
  };
  const auto has_time = [](const auto& ratio) { return ratio.has_value(); };
  if (std::ranges::none_of(pairs, &Pair::ok_in_both) ||
      std::ranges::any_of(pairs, changes_status) || std::ranges::any_of(ratios, has_time)) {
    return "";
  }
  return "no cell that is ok in BASE and in NEW has samples in both: nothing tells their times "
         "apart";
}

bool is_worse(const CellComparison& a, const CellComparison& b) {
  if (a.verdict != b.verdict) return a.verdict < b.verdict;
  const auto ratio = [](const CellComparison& cell) { return cell.time ? cell.time->ratio : 0; };
  return ratio(a) > ratio(b);
}

}  // namespace

std::string_view to_string(CellVerdict verdict) {
  switch (verdict) {
    case CellVerdict::broken:
      return "broken";
    case CellVerdict::slower:
      return "slower";
    case CellVerdict::unclear:
      return "unclear";
    case CellVerdict::only_base:
      return "only_base";
    case CellVerdict::only_new:
      return "only_new";
    case CellVerdict::fixed:
      return "fixed";
    case CellVerdict::faster:
      return "faster";
    case CellVerdict::same:
      return "same";
  }
  return "?";
}

bool Comparison::has_regression() const {
  return counts.at(CellVerdict::broken) + counts.at(CellVerdict::slower) > 0;
}

Rounds rounds_of(const Record& record) {
  if (!record.rounds_ms.empty()) return record.rounds_ms;
  return {record.samples_ms};
}

Comparison compare_records(std::span<const Record> base, std::span<const Record> next,
                           const CompareOptions& options) {
  const std::vector<Record> latest_base = latest_records(base);
  const std::vector<Record> latest_next = latest_records(next);
  const std::vector<Pair> pairs = match(latest_base, latest_next);
  if (!options.across) refuse_other_machines(pairs);
  Comparison comparison;
  comparison.min_effect = options.min_effect;
  const auto ratios = ratios_of(pairs, options.min_effect);
  if (std::string note = note_of(pairs, ratios); !note.empty()) {
    comparison.notes.push_back(std::move(note));
  }
  for (const CellVerdict verdict : kVerdicts) comparison.counts[verdict] = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    comparison.cells.push_back(compare_cell(pairs[i], ratios[i]));
    ++comparison.counts[comparison.cells.back().verdict];
    if (!ratios[i]) continue;
    if (!ratios[i]->over_rounds) ++comparison.single_rounds;
    if (is_busy(*pairs[i].base) || is_busy(*pairs[i].next)) ++comparison.busy;
  }
  std::ranges::stable_sort(comparison.cells, is_worse);
  comparison.environment = environment_changes(latest_base, latest_next);
  return comparison;
}

}  // namespace longca
