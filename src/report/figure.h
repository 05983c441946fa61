#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/view.h"

namespace longca {

/// One bar of a panel, or the mark that stands in its place.
struct FigureBar {
  std::size_t kernel = 0;      ///< index into Figure::kernels
  double x = 0;                ///< its middle; the panel's lengths are at 0, 1, 2, …
  std::optional<double> rate;  ///< in Figure::unit
  StatusCode status = StatusCode::ok;
};

/// A kernel that has no number in a panel, and the statuses that it has instead.
struct FigureAbsence {
  std::size_t kernel = 0;  ///< index into Figure::kernels
  std::set<StatusCode> statuses{};
};

/// One mask over its lengths.
struct FigurePanel {
  std::string title;
  std::vector<std::int64_t> tokens{};  ///< ascending
  double bar_width = 0;
  std::vector<FigureBar> bars{};
  /// Kernels without a number at any length, where there are so many bars that a mark in the place
  /// of each would not be readable; then they have no bars.
  std::vector<FigureAbsence> absent{};
};

/// One pass at one setting of the axes: a figure in the manner of the published ones.
struct Figure {
  Pass pass = Pass::forward;
  AxisTexts name;     ///< what sets it apart from the other figures of the pass
  AxisTexts setting;  ///< all axes that its cells share
  RateUnit unit;
  std::vector<std::string> kernels;  ///< of the whole view, so that colours agree between figures
  std::vector<FigurePanel> panels;

  double largest_rate() const;
  /// Whether some bar is the kernel's, or has the status.
  bool shows(std::size_t kernel) const;
  bool shows(StatusCode status) const;
};

std::vector<Figure> make_figures(const View& view);

}  // namespace longca
