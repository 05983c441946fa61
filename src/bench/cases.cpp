#include "bench/cases.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"

namespace longca {
namespace {

constexpr std::int64_t kMaxCases = 1'000'000;

/// One axis of the product with its values, in the order of the table.
struct Dimension {
  const Axis* axis;
  std::vector<std::string> values;
};

std::vector<Dimension> dimensions_of(const Suite& suite) {
  std::vector<Dimension> dimensions;
  std::int64_t product = 1;
  for (const Axis& axis : axis_table()) {
    if (axis.over_ranks) continue;
    const auto given = suite.axes.find(axis.name);
    dimensions.push_back(
        {&axis, given != suite.axes.end() ? given->second : axis.parse(axis.standard)});
    product *= static_cast<std::int64_t>(dimensions.back().values.size());
    if (product > kMaxCases) {
      throw_input_error("suite '{}' is a product of more than {} cells", suite.name, kMaxCases);
    }
  }
  return dimensions;
}

bool matches(const Case& c, const AxisValues& when) {
  return std::ranges::all_of(when, [&](const auto& condition) {
    const auto value = find_axis(condition.first).text(c);
    return value && std::ranges::find(condition.second, *value) != condition.second.end();
  });
}

/// Applies the exceptions in their order; the reason if one of them leaves the case out.
std::string apply_exceptions(const Suite& suite, Case& c) {
  for (const SuiteException& exception : suite.exceptions) {
    if (!matches(c, exception.when)) continue;
    if (!exception.skip.empty()) return exception.skip;
    for (const auto& [name, values] : exception.set) find_axis(name).assign(c, values.front());
    c = canonical(c);
  }
  return "";
}

/// Calls body(case) for every point of the product, the last axis running fastest.
template <typename Body>
void for_each_case(const std::vector<Dimension>& dimensions, const Body& body) {
  std::vector<std::size_t> index(dimensions.size(), 0);
  while (true) {
    Case c;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      dimensions[i].axis->assign(c, dimensions[i].values[index[i]]);
    }
    body(canonical(c));
    std::size_t i = dimensions.size();
    while (i > 0 && ++index[i - 1] == dimensions[i - 1].values.size()) index[--i] = 0;
    if (i == 0) return;
  }
}

/// Cells of one problem become neighbours; otherwise the order stays.
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

}  // namespace

CaseList expand(const Suite& suite) {
  CaseList list;
  std::unordered_set<std::string> seen;
  for_each_case(dimensions_of(suite), [&](Case c) {
    const std::string reason = apply_exceptions(suite, c);
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

}  // namespace longca
