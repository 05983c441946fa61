#pragma once

#include <string>
#include <vector>

#include "cost/platform.h"

namespace longca::calibrate {

/// A figure that a platform's page has with its spread, and what it is now.
struct CheckedFigure {
  std::string key;
  double before = 0;
  double now = 0;
  double allowed = 0;  ///< by what part it may change: both spreads, but at least the least effect
  bool has_moved() const;
};

/// The figures of `page` that have a spread there and in `now`, in the order of the page.
/// `min_effect`: changes up to this part are none.
std::vector<CheckedFigure> check_figures(const cost::Platform& page, const cost::Platform& now,
                                         double min_effect);

/// The kernels whose rates the page has measured.
std::vector<std::string> measured_kernels(const cost::Platform& page);
/// Whether the page has measured links.
bool has_measured_links(const cost::Platform& page);

}  // namespace longca::calibrate
