#include "report/data/record_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "bench/suite/axes.h"
#include "bench/suite/axis_values.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/printable.h"
#include "report/view.h"

namespace longca {
namespace {

using Texts = std::vector<std::string>;

/// The values that the records have on the axis, in order of appearance.
Texts values_of(const Axis& axis, std::span<const Record> records) {
  Texts values;
  for (const Record& record : records) {
    const auto value = full_text(axis, record.c);
    if (!value) continue;
    find_or_add(
        values, [&](const std::string& known) { return known == *value; }, *value);
  }
  return values;
}

/// The values that one item of the list names: a name as it stands, else what the axis reads.
Texts named_by(const Axis& axis, const std::string& item, const Texts& present) {
  if (std::ranges::find(present, item) != present.end()) return {item};
  if (axis.names != nullptr) return {};
  Texts values = axis.parse(item);
  std::erase_if(values, [&](const std::string& value) {
    return std::ranges::find(present, value) == present.end();
  });
  return values;
}

[[noreturn]] void refuse(const Axis& axis, const std::string& item, const Texts& present) {
  constexpr std::size_t kShown = 12;
  if (present.empty()) throw_input_error("no record has the axis '{}'", axis.name);
  const std::size_t shown = std::min(present.size(), kShown);
  throw_input_error("no record has {} '{}'{}; there are {}{}", axis.name, printable(item),
                    suggestion(item, present),
                    printable(fmt::format("{}", fmt::join(std::span(present).first(shown), ", "))),
                    present.size() > shown ? ", …" : "");
}

std::set<std::string> wanted_values(const Axis& axis, std::string_view list, const Texts& present) {
  std::set<std::string> wanted;
  for (const std::string_view part : split_list(axis.name, list)) {
    const std::string item(part);
    const Texts values =
        item == "all" && axis.names != nullptr ? present : named_by(axis, item, present);
    if (values.empty()) refuse(axis, item, present);
    wanted.insert(values.begin(), values.end());
  }
  return wanted;
}

}  // namespace

std::vector<Record> filter_records(std::vector<Record> records,
                                   std::span<const std::string> arguments) {
  // Of all records: what one argument leaves says nothing of another's spelling.
  std::vector<std::pair<const Axis*, std::set<std::string>>> wanted;
  for (const std::string_view argument : arguments) {
    const auto [axis, list] = split_axis_argument(argument);
    wanted.emplace_back(axis, wanted_values(*axis, list, values_of(*axis, records)));
  }
  std::erase_if(records, [&](const Record& record) {
    return std::ranges::any_of(wanted, [&](const auto& of_axis) {
      const auto value = full_text(*of_axis.first, record.c);
      return value && !of_axis.second.contains(*value);
    });
  });
  return records;
}

}  // namespace longca
