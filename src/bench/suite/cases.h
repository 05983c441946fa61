#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "bench/suite/case.h"
#include "bench/suite/suite.h"

namespace longca {

/// The cells of a suite.
struct CaseList {
  /// Distinct, and ordered so that cells with the same inputs and reference are neighbours: by
  /// problem in the product's order, then kernel, pass and mode.
  std::vector<Case> cases;
  /// Cells that an exception left out.
  struct Skipped {
    Case c;
    std::string reason;
  };
  std::vector<Skipped> skipped;
};

inline constexpr std::size_t kAllCases = std::numeric_limits<std::size_t>::max();

/// The product of the suite's axes (its standard value for an axis that it does not name) with its
/// exceptions, without axes of ranks; the first `max_cells` of them, or fewer, even none, where
/// most of the first points of the product are left out. Throws InputError if no cell is left or
/// there are more than a million.
CaseList expand(const Suite& suite, std::size_t max_cells = kAllCases);

/// How many cells a suite has, counted without making them.
struct SuiteSize {
  std::int64_t cells = 0;
  std::int64_t problems = 0;  ///< sets of cells with the same inputs and reference
  std::map<std::string, std::int64_t> skipped;  ///< cells left out, by reason
};
/// Of the list that expand makes. Throws InputError if there are more than a million cells.
SuiteSize size_of(const Suite& suite);

/// How many ranks can be started here, for `ranks=found`.
struct FoundRanks {
  int cpu = 1;                   ///< on CPUs
  int cuda = 0;                  ///< with a GPU each
  int per_node = kRanksPerNode;  ///< for factors chosen by the nodes
};

/// The same for cells over ranks, ordered by their number of ranks. `ranks=found`: 1, 2, 4, … and
/// all that the device has.
CaseList expand_over_ranks(const Suite& suite, const FoundRanks& found,
                           std::size_t max_cells = kAllCases);
/// Of the list that expand_over_ranks makes.
SuiteSize size_over_ranks(const Suite& suite, const FoundRanks& found);

}  // namespace longca
