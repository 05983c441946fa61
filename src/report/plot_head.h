#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "report/view.h"

namespace longca {

/// What the figures of write_plots have in common.

inline constexpr std::array<const char*, 3> kPlotSuffixes = {".png", ".svg", ".pdf"};

/// "#rrggbb" of the n-th series; the page has the same.
const char* plot_color(std::size_t n);
/// 1, 2 or 5 times a power of ten, for at most six tics.
double plot_tic_step(double largest);
/// "NAME-dtype-float32": letters, digits, dots, dashes and underscores only.
std::string plot_stem(std::string name, const AxisTexts& setting);

/// Small grey words above a panel, below its title: on at most two lines of a panel of this width,
/// in pixels, the end cut where there are more. Also sets the title, which makes room for them.
std::string plot_title(const std::string& title, const std::string& note, int width);

/// The words on at most `lines` lines of so many letters, the last ending in "…" if words are left.
std::vector<std::string> wrapped_text(std::string_view text, std::size_t letters,
                                      std::size_t lines);

/// The lines above the panels of a figure: texts, some with a coloured square before them.
class PlotHead {
 public:
  struct Item {
    std::string text;
    const char* color = nullptr;  ///< of the square, if there is one
    int dash = 0;  ///< above 0: a stroke of this gnuplot dash type instead of the square,
    bool has_square = false;  ///< or before it
    int pattern = 0;          ///< above 0: the square is filled with this gnuplot pattern
  };

  /// `width` of the figure, in pixels of a 96 dpi screen.
  explicit PlotHead(int width) : width_(width) {}

  /// Items from left to right, on as many lines as they need. The first line is larger.
  void add_line(const std::vector<Item>& items);
  int height() const;
  /// Labels and squares at their places in a picture of this height.
  std::string script(int height) const;

 private:
  struct Placed {
    Item item;
    double x;
    int line;
  };

  int width_;
  int line_ = 0;
  std::vector<Placed> placed_;
};

}  // namespace longca
