#pragma once

#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// What an op touches. What it merges or adds into is written and read.
struct OpRegions {
  std::vector<Region> read, written;
};
OpRegions regions_of(const Op& op);

/// Whether the two share an element.
bool overlap(const Region& a, const Region& b);
/// Whether one writes what the other reads or writes, so that they cannot change places.
bool conflict(const OpRegions& a, const OpRegions& b);

}  // namespace longca
