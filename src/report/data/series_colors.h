#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace longca {

/// The colours of kernels and schemes, the same in every figure and on every page. Those of this
/// program have one each, from a table; any other name (a plug-in) takes one of the spare colours:
/// the one that its hash points at, or the next that no name before it has taken. When all are
/// taken, shades of them follow.
class SeriesColors {
 public:
  /// "#rrggbb". `shade` 0 is the colour itself; others are darker and lighter ones, for variants of
  /// one scheme. No two names, and no two shades of a name, have the same.
  std::string color_of(const std::string& name, std::size_t shade = 0);

 private:
  std::map<std::string, std::string> taken_;  // spare colours by name
};

/// The colour mixed with white (share > 0) or black (share < 0).
std::string mixed_color(std::string_view color, double share);

}  // namespace longca
