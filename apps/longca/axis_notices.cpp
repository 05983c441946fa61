#include "axis_notices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "mask/generators.h"

namespace longca {
namespace {

/// The axes on which it depends whether a case has another one.
constexpr std::string_view kDeciding[] = {"mask", "pass", "scheme"};

std::string_view name_in(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

/// Whether a value of the axis is part of the case's key.
bool has_axis(const Axis& axis, Case c, const std::string& value) {
  if (axis.applies != nullptr) return axis.applies(mask_traits(c.mask));
  axis.assign(c, value);
  return axis.text(canonical(std::move(c))).has_value();
}

std::vector<std::string> values_of(const AxisValues& chosen, const Axis& axis) {
  const auto given = chosen.find(axis.name);
  return given != chosen.end() ? given->second : axis.parse(axis.standard);
}

/// A case for each combination of the axes that decide.
std::vector<Case> deciding_cases(const AxisValues& chosen, bool over_ranks) {
  std::vector<Case> cases{Case{}};
  for (const std::string_view name : kDeciding) {
    const Axis& axis = find_axis(name);
    if (axis.over_ranks && !over_ranks) continue;
    std::vector<Case> more;
    for (const std::string& value : values_of(chosen, axis)) {
      for (Case c : cases) {
        axis.assign(c, value);
        more.push_back(std::move(c));
      }
    }
    cases = std::move(more);
  }
  return cases;
}

/// The masks, schemes or passes that have the axis.
std::string owners_of(const Axis& axis, const std::string& value) {
  if (axis.applies != nullptr) return masks_with(axis);
  const Axis& any_mask = find_axis("mask");
  const Axis& deciding = find_axis(axis.over_ranks ? "scheme" : "pass");
  std::vector<std::string> owners;
  for (const std::string& name : deciding.names()) {
    Case c;
    any_mask.assign(c, any_mask.standard);
    deciding.assign(c, name);
    if (has_axis(axis, c, value)) owners.push_back(name);
  }
  return fmt::format("{}", fmt::join(owners, ", "));
}

/// The value that is tried: one that says something; "" if all of them leave cases as they are.
std::string telling_value(const Axis& axis, const AxisValues& chosen) {
  const auto given = chosen.find(axis.name);
  if (given == chosen.end()) return "";
  const auto says_something = [&](const std::string& value) {
    return !axis.quiet || value != axis.standard;
  };
  const auto found = std::ranges::find_if(given->second, says_something);
  return found == given->second.end() ? "" : *found;
}

}  // namespace

std::string masks_with(const Axis& axis) {
  std::vector<std::string> masks;
  for (const MaskTraits& mask : mask_table()) {
    if (axis.applies(mask)) masks.push_back(mask.name);
  }
  return fmt::format("{}", fmt::join(masks, ", "));
}

std::vector<std::string> describe_repeated(std::string_view option,
                                           std::span<const std::string> arguments) {
  std::map<std::string_view, std::vector<std::string_view>> by_name;
  for (const std::string_view argument : arguments) by_name[name_in(argument)].push_back(argument);
  std::vector<std::string> lines;
  for (const auto& [name, given] : by_name) {
    if (given.size() == 1) continue;
    lines.push_back(fmt::format("{} {} is given {} times: the last one counts, {}", option, name,
                                given.size(), given.back()));
  }
  return lines;
}

std::vector<std::string> describe_unused(std::span<const std::string> arguments,
                                         const AxisValues& chosen, bool over_ranks) {
  std::map<std::string_view, std::string_view> last;
  for (const std::string_view argument : arguments) last[name_in(argument)] = argument;
  const std::vector<Case> cases = deciding_cases(chosen, over_ranks);
  std::vector<std::string> lines;
  for (const Axis& axis : axis_table()) {
    const auto argument = last.find(axis.name);
    if (argument == last.end()) continue;
    const std::string value = telling_value(axis, chosen);
    const auto uses = [&](const Case& c) { return has_axis(axis, c, value); };
    if (value.empty() || std::ranges::any_of(cases, uses)) continue;
    lines.push_back(fmt::format("-a {} is used by no cell: it is of {}", argument->second,
                                owners_of(axis, value)));
  }
  return lines;
}

}  // namespace longca
