#pragma once

#include <string>
#include <vector>

#include "bench/case.h"
#include "bench/suite.h"

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

/// The product of the suite's axes (an axis that it does not name has its standard value) with its
/// exceptions. Throws InputError if no cell is left or the product is too large to be meant.
CaseList expand(const Suite& suite);

}  // namespace longca
