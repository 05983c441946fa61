// Suites: their text, their cells, and their dry run.

#include <algorithm>
#include <sstream>

#include "bench/run/dry_run.h"
#include "bench/suite/cases.h"
#include "bench/suite/suite.h"
#include "fuzz.h"

namespace longca::fuzz {

void fuzz(std::string_view text) {
  constexpr std::size_t kCells = 20;
  constexpr FoundRanks kFound = {.cpu = 4, .cuda = 8};
  Suite suite;
  if (!accepts([&] { suite = parse_suite(text, "fuzz.toml"); })) return;
  // Under sanitizers, to count the cells of a large product takes longer than an input may.
  constexpr std::size_t kPoints = 200;
  std::size_t points = 1;
  for (const auto& [name, values] : suite.axes) {
    points = std::min(points * std::min(values.size(), kPoints + 1), kPoints + 1);
  }
  if (points > kPoints) return;
  accepts([&] {
    const CaseList list = expand(suite, kCells);
    const SuiteSize size = size_of(suite);
    require(size.cells >= std::ssize(list.cases), "there are more cells than cells");
    std::ostringstream out;
    print_dry_run(out, list, size, suite.limits);
    require_printable(out.view());
  });
  accepts([&] { expand_over_ranks(suite, kFound, kCells); });
  accepts([&] { size_over_ranks(suite, kFound); });
}

}  // namespace longca::fuzz
