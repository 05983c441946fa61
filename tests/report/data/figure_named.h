#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "report/data/figures.h"

namespace longca::testing {

/// The set's figure of that name.
inline const Figure& figure_named(const FigureSet& set, const std::string& name) {
  const auto found = std::ranges::find(set.figures, name, &Figure::name);
  if (found == set.figures.end()) throw std::logic_error("no figure " + name);
  return *found;
}

}  // namespace longca::testing
