#include "report/page_title.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "bench/record/origin.h"

namespace longca {
namespace {

/// "2, 4 and 8 ranks".
std::string ranks_text(const std::set<int>& ranks) {
  std::string text;
  for (const int count : ranks) {
    const bool is_last = count == *ranks.rbegin();
    text += fmt::format("{}{}", text.empty() ? "" : is_last ? " and " : ", ", count);
  }
  return fmt::format("{} rank{}", text, ranks == std::set<int>{1} ? "" : "s");
}

/// "A and B"; of more than three how many there are.
std::string short_list(const std::vector<std::string>& names, std::string_view what) {
  if (names.size() > 3) return fmt::format("{} {}", names.size(), what);
  return fmt::format("{}", fmt::join(names, " and "));
}

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (name.empty() || std::ranges::find(names, name) != names.end()) return;
  names.push_back(name);
}

}  // namespace

std::string page_heading(std::span<const Record> records) {
  std::set<int> ranks;
  bool has_single = false;
  for (const Record& record : records) {
    if (record.c.scheme) {
      ranks.insert(record.c.ranks.value_or(1));
    } else {
      has_single = true;
    }
  }
  std::string heading = "Attention kernels";
  if (!ranks.empty()) {
    heading = "Context parallelism over " + ranks_text(ranks);
    if (has_single) heading += ", and attention kernels";
  }
  if (const std::string machines = machines_text(records); !machines.empty()) {
    heading += (!ranks.empty() && has_single ? ", on " : " on ") + machines;
  }
  const std::string simulated = simulated_text(records);
  return simulated.empty() ? heading : heading + ", " + simulated;
}

std::string machines_text(std::span<const Record> records) {
  std::vector<std::string> machines;
  for (const Record& record : records) {
    if (!record.c.platform) add_name(machines, machine_of_case(record));
  }
  return short_list(machines, "machines");
}

std::string simulated_text(std::span<const Record> records) {
  std::vector<std::string> platforms;
  for (const Record& record : records) add_name(platforms, record.c.platform.value_or(""));
  if (platforms.empty()) return "";
  const bool is_all = std::ranges::all_of(
      records, [](const Record& record) { return record.c.platform.has_value(); });
  return fmt::format("{}simulated on {}", is_all ? "" : "in part ",
                     short_list(platforms, "platforms"));
}

}  // namespace longca
