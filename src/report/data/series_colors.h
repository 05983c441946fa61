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
  /// The same on kDarkGround, kMinContrast from it or more: lighter where the colour itself is
  /// less, and all other shades lighter still.
  std::string on_dark(const std::string& name, std::size_t shade = 0);

 private:
  /// One of the program's own colours, in a shade that keeps those of plug-ins apart.
  struct Base {
    std::string_view color;
    std::size_t shade = 0;
  };
  Base base_of(const std::string& name);

  std::map<std::string, Base> taken_;  // spare colours by name
};

/// The ground of figures on pages in a dark scheme: --card of html/style.css.
inline constexpr std::string_view kDarkGround = "#1a1e26";
/// What WCAG 2 asks of text; a series' colour is that of its lines, its bars and its letters.
inline constexpr double kMinContrast = 4.5;

/// The contrast of two colours "#rrggbb" by WCAG 2: 1, of equal ones, to 21.
double contrast(std::string_view a, std::string_view b);

/// The colour mixed with white (share > 0) or black (share < 0).
std::string mixed_color(std::string_view color, double share);

}  // namespace longca
