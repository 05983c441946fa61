// Suites: their text, their cells, and their dry run.

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
