#include "bench/suite/cases.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"

namespace longca {
namespace {

constexpr std::int64_t kMaxCases = 1'000'000;
constexpr std::string_view kTokens = "tokens";

/// One axis of the product with its values, in the order of the table.
struct Dimension {
  const Axis* axis;
  std::vector<std::string> values;
};

/// An axis's values in the product; none: it is not part of it.
std::vector<std::string> values_of(const Suite& suite, const Axis& axis) {
  const auto given = suite.axes.find(axis.name);
  if (given != suite.axes.end()) return given->second;
  if (axis.standard.empty()) return {};
  return axis.parse(axis.standard);
}

/// Axes in the order of the table. `tokens_per_rank` takes the place of `tokens`, at the end, since
/// it needs the ranks.
std::vector<const Axis*> axes_of_product(const Suite& suite, bool over_ranks) {
  const bool per_rank = over_ranks && suite.axes.contains(kTokensPerRank);
  std::vector<const Axis*> axes;
  for (const Axis& axis : axis_table()) {
    if (axis.over_ranks && !over_ranks) continue;
    if (per_rank && axis.name == kTokens) continue;
    axes.push_back(&axis);
  }
  if (per_rank) axes.push_back(&find_axis(kTokensPerRank));
  return axes;
}

std::vector<Dimension> dimensions_of(const Suite& suite, bool over_ranks) {
  std::vector<Dimension> dimensions;
  std::int64_t product = 1;
  for (const Axis* axis : axes_of_product(suite, over_ranks)) {
    std::vector<std::string> values = values_of(suite, *axis);
    if (values.empty()) continue;
    product *= static_cast<std::int64_t>(values.size());
    dimensions.push_back({axis, std::move(values)});
    if (product > kMaxCases) {
      throw_input_error("suite '{}' is a product of more than {} cells", suite.name, kMaxCases);
    }
  }
  return dimensions;
}

bool matches(const Case& c, const AxisValues& when) {
  return std::ranges::all_of(when, [&](const auto& condition) {
    const auto value = full_text(find_axis(condition.first), c);
    return value && std::ranges::find(condition.second, *value) != condition.second.end();
  });
}

/// Applies the exceptions in their order to `c`, which is `raw` with defaults filled in. Returns
/// the reason if one of them leaves the case out.
std::string apply_exceptions(const Suite& suite, Case raw, Case& c, int ranks_per_node) {
  for (const SuiteException& exception : suite.exceptions) {
    if (!matches(c, exception.when)) continue;
    if (!exception.skip.empty()) return exception.skip;
    for (const auto& [name, values] : exception.set) find_axis(name).assign(raw, values.front());
    c = canonical(raw, ranks_per_node);
  }
  return "";
}

/// Calls body(case) for every point of the product, the last axis running fastest.
template <typename Body>
void for_each_point(const std::vector<Dimension>& dimensions, const Body& body) {
  std::vector<std::size_t> index(dimensions.size(), 0);
  while (true) {
    Case c;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      dimensions[i].axis->assign(c, dimensions[i].values[index[i]]);
    }
    body(std::move(c));
    std::size_t i = dimensions.size();
    while (i > 0 && ++index[i - 1] == dimensions[i - 1].values.size()) index[--i] = 0;
    if (i == 0) return;
  }
}

/// 1, 2, 4, … and `all`.
std::vector<std::string> doubled_up_to(int all) {
  std::vector<std::string> counts;
  for (int ranks = 1; ranks < all; ranks *= 2) counts.push_back(std::to_string(ranks));
  counts.push_back(std::to_string(all));
  return counts;
}

/// The suite with `found` written out: the device, and its numbers of ranks.
Suite with_found(const Suite& suite, const FoundRanks& found) {
  Suite result = suite;
  const auto devices = values_of(suite, find_axis("device"));
  int all = 1;
  for (const std::string& device : devices) {
    Case c;
    find_axis("device").assign(c, device);
    all = std::max(all, c.device == "cpu" ? found.cpu : found.cuda);
  }
  std::vector<std::string> ranks;
  for (const std::string& value : values_of(suite, find_axis("ranks"))) {
    const auto counts = value == kFound ? doubled_up_to(all) : std::vector{value};
    for (const auto& count : counts) {
      if (std::ranges::find(ranks, count) == ranks.end()) ranks.push_back(count);
    }
  }
  result.axes["ranks"] = std::move(ranks);
  return result;
}

/// Makes cells of one problem neighbours, keeping the order otherwise.
void group_by_problem(std::vector<Case>& cases) {
  std::unordered_map<std::string, std::size_t> order;
  std::vector<std::pair<std::size_t, Case>> keyed;
  for (Case& c : cases) {
    const std::size_t rank = order.try_emplace(c.problem_key(), order.size()).first->second;
    keyed.emplace_back(rank, std::move(c));
  }
  std::ranges::stable_sort(keyed, {}, [](const auto& entry) { return entry.first; });
  cases.clear();
  for (auto& [rank, c] : keyed) cases.push_back(std::move(c));
}

CaseList expand_product(const Suite& suite, bool over_ranks, int ranks_per_node) {
  CaseList list;
  std::unordered_set<std::string> seen;
  for_each_point(dimensions_of(suite, over_ranks), [&](const Case& raw) {
    Case c = canonical(raw, ranks_per_node);
    const std::string reason = apply_exceptions(suite, raw, c, ranks_per_node);
    if (!seen.insert(c.key()).second) return;
    if (reason.empty()) {
      list.cases.push_back(std::move(c));
    } else {
      list.skipped.push_back({std::move(c), reason});
    }
  });
  if (list.cases.empty()) {
    throw_input_error("suite '{}' has no cell: its exceptions leave out all {} ({})", suite.name,
                      list.skipped.size(), list.skipped.front().reason);
  }
  group_by_problem(list.cases);
  return list;
}

}  // namespace

CaseList expand(const Suite& suite) {
  return expand_product(suite, false, kRanksPerNode);
}

CaseList expand_over_ranks(const Suite& suite, const FoundRanks& found) {
  CaseList list = expand_product(with_found(suite, found), true, found.per_node);
  std::ranges::stable_sort(list.cases, {}, [](const Case& c) { return c.ranks.value(); });
  return list;
}

}  // namespace longca
