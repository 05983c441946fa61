#include "report/page_title.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
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

/// "NVIDIA H200 and AMD EPYC 9R14, 2 cores"; their number if there are more than three.
std::string machines_text(std::span<const Record> records) {
  std::vector<std::string> machines;
  std::set<std::string> known;
  for (const Record& record : records) {
    std::string machine = machine_of_case(record);
    if (!machine.empty() && known.insert(machine).second) machines.push_back(std::move(machine));
  }
  if (machines.size() > 3) return fmt::format("{} machines", machines.size());
  return fmt::format("{}", fmt::join(machines, " and "));
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
    if (has_single) heading += ", and attention kernels,";
  }
  const std::string machines = machines_text(records);
  return machines.empty() ? heading : heading + " on " + machines;
}

}  // namespace longca
