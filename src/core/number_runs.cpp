#include "core/number_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace longca {

std::string number_runs(const std::set<int>& numbers) {
  std::vector<std::string> runs;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int first = *it;
    int last = first;
    while (++it != numbers.end() && *it == last + 1) ++last;
    runs.push_back(fmt::format("{}", first));
    if (last > first) runs.back() += fmt::format("{}{}", last == first + 1 ? ", " : " to ", last);
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

}  // namespace longca
