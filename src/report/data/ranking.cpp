#include "report/data/ranking.h"

#include <algorithm>

#include "bench/compare/compare_records.h"

namespace longca {
namespace {

/// The passes of which a row's time for the work is the sum.
std::vector<Pass> passes_of(const ViewRow& row, RankedWork work) {
  if (work == RankedWork::forward) return {Pass::forward};
  if (work == RankedWork::backward) return {Pass::backward};
  if (row.pass(Pass::step) != nullptr) return {Pass::step};
  return {Pass::forward, Pass::backward};
}

/// Adds the pass to the row; false without a time.
bool add_pass(const ViewRow& row, Pass pass, RankedRow& ranked) {
  const Record* record = row.pass(pass);
  const auto time = metric_of(record, "time_ms");
  const auto rate = metric_of(record, "tflops");
  if (!time || !rate || !record->status.ok()) return false;
  const double work = ranked.tflops * ranked.time_ms + *rate * *time;
  ranked.time_ms += *time;
  ranked.tflops = ranked.time_ms > 0 ? work / ranked.time_ms : 0;
  const auto& interval = row.interval(pass);
  if (interval && ranked.interval) {
    ranked.interval->low += interval->low;
    ranked.interval->high += interval->high;
  } else {
    ranked.interval.reset();
  }
  return true;
}

/// What the work took in each round: the sums of its passes, sample by sample.
Rounds rounds_of_work(const ViewRow& row, RankedWork work) {
  const std::vector<Pass> passes = passes_of(row, work);
  Rounds sums = rounds_of(*row.pass(passes.front()));
  for (const Pass pass : std::span(passes).subspan(1)) {
    const Rounds more = rounds_of(*row.pass(pass));
    sums.resize(std::min(sums.size(), more.size()));
    for (std::size_t r = 0; r < sums.size(); ++r) {
      sums[r].resize(std::min(sums[r].size(), more[r].size()));
      for (std::size_t i = 0; i < sums[r].size(); ++i) sums[r][i] += more[r][i];
    }
  }
  return sums;
}

bool is_tie(const RankedRow& fastest, const RankedRow& other) {
  if (other.time_ms <= fastest.time_ms * (1 + Ranking::kTie)) return true;
  return fastest.interval && other.interval && other.interval->low <= fastest.interval->high;
}

}  // namespace

std::string_view to_string(RankedWork work) {
  if (work == RankedWork::forward) return "forward";
  return work == RankedWork::backward ? "backward" : "step";
}

Ranking rank(const ViewGroup& group, RankedWork work) {
  Ranking ranking;
  for (const ViewRow& row : group.rows) {
    const std::vector<Pass> passes = passes_of(row, work);
    RankedRow ranked{.row = &row, .record = row.pass(passes.front()), .interval = TimeInterval{}};
    const auto adds = [&](Pass pass) { return add_pass(row, pass, ranked); };
    if (std::ranges::all_of(passes, adds)) ranking.rows.push_back(ranked);
  }
  std::ranges::stable_sort(ranking.rows, {}, &RankedRow::time_ms);
  std::vector<TimePair> pairs;
  for (const RankedRow& row : ranking.rows) {
    pairs.push_back(
        {rounds_of_work(*ranking.rows.front().row, work), rounds_of_work(*row.row, work)});
  }
  const auto answers = compare_times(pairs, Ranking::kTie);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    RankedRow& row = ranking.rows[i];
    row.is_first = answers[i] && answers[i]->over_rounds ? answers[i]->change != Change::slower
                                                         : is_tie(ranking.rows.front(), row);
  }
  return ranking;
}

const RankedRow* Ranking::next() const {
  const auto found = std::ranges::find_if_not(rows, &RankedRow::is_first);
  return found == rows.end() ? nullptr : &*found;
}

std::optional<double> Ranking::lead() const {
  const RankedRow* second = next();
  if (second == nullptr || rows.front().time_ms <= 0) return std::nullopt;
  return second->time_ms / rows.front().time_ms;
}

bool Ranking::is_marked(const ViewRow& row) const {
  if (rows.size() < 2) return false;
  const auto found = std::ranges::find(rows, &row, &RankedRow::row);
  return found != rows.end() && found->is_first;
}

}  // namespace longca
