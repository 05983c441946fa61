#include "report/ranks_metrics.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "bench/record/origin.h"

namespace longca {
namespace {

constexpr const char* kOneDevice = "one device";
constexpr const char* kOneRank = "1 rank";

/// The machine, and the case's key without the axes of schemes.
std::string work_of(const std::string& machine, Case c) {
  c.scheme.reset();
  c.ranks.reset();
  c.shard.reset();
  c.factor.reset();
  c.transport.reset();
  return c.key() + " on " + machine;
}

struct Candidate {
  Scaling scaling;
  std::set<int> ranks;
};

void add_to(std::vector<Candidate>& candidates, const Scaling& scaling, int ranks) {
  find_or_add(
      candidates, [&](const Candidate& known) { return known.scaling == scaling; },
      Candidate{scaling, {}})
      .ranks.insert(ranks);
}

}  // namespace

bool Scaling::contains(const Case& c) const {
  if (!c.scheme) return false;
  if (!per_rank) return c.tokens == tokens;
  const std::int64_t ranks = std::max(c.ranks.value_or(1), 1);
  return c.tokens % ranks == 0 && c.tokens / ranks == tokens;
}

std::string Scaling::label() const {
  return format_tokens(tokens) + (per_rank ? " tokens per rank" : " tokens");
}

std::vector<Scaling> make_scalings(std::span<const Record> records) {
  std::vector<Candidate> candidates;
  std::vector<const Case*> left;
  for (const Record& record : records) {
    if (!record.c.scheme) continue;
    left.push_back(&record.c);
    const int ranks = std::max(record.c.ranks.value_or(1), 1);
    add_to(candidates, {record.c.tokens, false}, ranks);
    if (record.c.tokens % ranks == 0) add_to(candidates, {record.c.tokens / ranks, true}, ranks);
  }
  const auto order = [](const Candidate& candidate) {
    return std::make_tuple(-static_cast<int>(candidate.ranks.size()), candidate.scaling.per_rank,
                           candidate.scaling.tokens);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const auto& a, const auto& b) { return order(a) < order(b); });
  std::vector<Scaling> scalings;
  for (const Candidate& candidate : candidates) {
    const auto erased =
        std::erase_if(left, [&](const Case* c) { return candidate.scaling.contains(*c); });
    if (erased > 0) scalings.push_back(candidate.scaling);
  }
  return scalings;
}

Baselines::Baselines(std::span<const Record> single, std::span<const Record> over_ranks) {
  for (const Record& record : single) {
    const auto rate = metric_of(&record, "tflops");
    if (rate && record.status.ok())
      by_work_[work_of(machine_of_case(record), record.c)] = {*rate, kOneDevice};
  }
  for (const Record& record : over_ranks) {
    const auto rate = metric_of(&record, "tflops");
    if (!rate || !record.status.ok() || record.c.ranks != 1) continue;
    Baseline& known = by_work_[work_of(machine_of_case(record), record.c)];
    if (known.name != kOneDevice && *rate > known.tflops) known = {*rate, kOneRank};
  }
}

Baseline Baselines::of(const Record& record) const {
  const Case& c = record.c;
  const std::string machine = machine_of_case(record);
  const std::int64_t ranks = std::max(c.ranks.value_or(1), 1);
  auto found = by_work_.find(work_of(machine, c));
  const bool same_work = found != by_work_.end();
  if (!same_work && c.tokens % ranks == 0) {
    Case share = c;
    share.tokens /= ranks;
    found = by_work_.find(work_of(machine, std::move(share)));
    if (found != by_work_.end() && found->second.name != kOneRank) found = by_work_.end();
  }
  if (found == by_work_.end()) return {};
  Baseline baseline = found->second;
  baseline.same_work = same_work;
  if (c.device != "cpu") return baseline;
  baseline.tflops /= static_cast<double>(ranks);
  baseline.name += " / ranks";
  return baseline;
}

std::optional<double> exposed_percent(const Record* record) {
  const auto exposed = metric_of(record, "exposed_comm_ms");
  const auto time = metric_of(record, "time_ms");
  if (!exposed || !time || *time <= 0) return std::nullopt;
  return 100 * *exposed / *time;
}

BytesCheck check_bytes(const Record* record) {
  const auto sent = metric_of(record, "bytes_sent");
  const auto formula = metric_of(record, "bytes_formula");
  if (!sent || !formula) return BytesCheck::unknown;
  return *sent == *formula ? BytesCheck::equal : BytesCheck::differs;
}

std::string_view mark_of(BytesCheck check) {
  switch (check) {
    case BytesCheck::unknown:
      return "";
    case BytesCheck::equal:
      return "=";
    case BytesCheck::differs:
      return "≠";
  }
  return "";
}

std::vector<const Record*> cells_off_formula(const View& view) {
  std::vector<const Record*> cells = view.records();
  std::erase_if(cells, [](const Record* cell) { return check_bytes(cell) != BytesCheck::differs; });
  return cells;
}

}  // namespace longca
