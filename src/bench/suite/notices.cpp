#include "bench/suite/notices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "bench/suite/axis_values.h"
#include "core/counted.h"

namespace longca {
namespace {

/// More values of an axis are counted, not listed.
constexpr std::size_t kListedValues = 4;

bool is_given(const Axis& axis, const AxisValues& given) {
  return given.contains(axis.name) || (axis.name == "tokens" && given.contains(kTokensPerRank));
}

}  // namespace

std::string describe_defaults(std::span<const Case> cases, const AxisValues& given) {
  std::string text;
  for (const Axis& axis : axis_table()) {
    if (axis.set_by_verb || is_given(axis, given)) continue;
    DistinctTexts distinct;
    for (const Case& c : cases) {
      if (auto value = axis.text(c)) distinct.add(std::move(*value));
    }
    const std::vector<std::string> values = distinct.take();
    if (values.empty()) continue;
    const std::string listed = values.size() > kListedValues
                                   ? fmt::format("({} values)", values.size())
                                   : fmt::format("{}", fmt::join(values, ","));
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.name, listed);
  }
  return text;
}

std::string describe_skipped(const Suite& suite, const CaseList& list) {
  if (list.skipped.empty()) return "";
  std::map<std::string, std::size_t> reasons;
  for (const CaseList::Skipped& skipped : list.skipped) ++reasons[skipped.reason];
  const auto most = std::ranges::max_element(reasons, {}, [](const auto& r) { return r.second; });
  std::string text = fmt::format("{} leaves out {}: {}", suite.name,
                                 counted(list.skipped.size(), "cell"), most->first);
  if (reasons.size() > 1) {
    const std::size_t others = reasons.size() - 1;
    text += fmt::format(" ({} of them, and {}: --dry-run of bench and cp lists all)", most->second,
                        counted(others, "more reason"));
  }
  return text;
}

}  // namespace longca
