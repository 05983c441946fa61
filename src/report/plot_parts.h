#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/view.h"

namespace longca {

// What a figure drawn by gnuplot is made of: scales, the lines above the panels, the grid of
// panels.

/// 1, 2 or 5 times a power of ten, for at most six tics.
double plot_tic_step(double largest);
/// "NAME-dtype-float32": letters, digits, dots, dashes and underscores only.
std::string plot_stem(std::string name, const AxisTexts& setting);

/// Sets a panel's title and, below it, a note in small grey letters: at most two lines for a panel
/// of this width in pixels, the rest cut.
std::string plot_title(const std::string& title, const std::string& note, int width);

/// Breaks a text into at most `max_lines` lines of at most `max_letters` letters; the last ends in
/// "…" if the text is cut.
std::vector<std::string> wrapped_text(std::string_view text, std::size_t max_letters,
                                      std::size_t max_lines);

/// The lines above the panels of a figure: texts, some with a coloured square before them.
class PlotHead {
 public:
  struct Item {
    std::string text;
    std::string color{};  ///< of the sign before it; none without
    int dash = 0;   ///< above 0: the sign is a stroke of this gnuplot dash type, else a square
    int point = 0;  ///< above 0: a point of this gnuplot type on the stroke
    bool is_small = false;  ///< in small grey letters
  };

  /// `width` of the figure, in pixels of a 96 dpi screen.
  explicit PlotHead(int width) : width_(width) {}

  /// Adds items from left to right, on as many lines as they need. The first line is larger.
  void add_line(const std::vector<Item>& items);
  /// Adds a line of axes: "heads 64:8   dim 128".
  void add_axes(const AxisTexts& axes);
  /// Adds a text in small grey letters, on at most three lines.
  void add_hint(const std::string& text);
  int height() const;
  /// The gnuplot labels and squares, for a figure of this height.
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

/// "X unsupported", … for each status that `shows` accepts.
std::vector<PlotHead::Item> mark_items(const std::function<bool(StatusCode)>& shows);

/// Panels in rows of `columns`, in pixels of a 96 dpi screen.
struct PanelGrid {
  int panels = 0;
  int columns = 1;
  int width = 0;  ///< of the figure
  int panel_height = 0;
};

/// A gnuplot script and the size of what it draws.
struct PlotScript {
  std::string text;
  int width = 0;
  int height = 0;
};

/// The script of a figure: the head above the panels. `settings` are gnuplot commands for all
/// panels, `panel_script` those of one.
PlotScript panels_script(const PanelGrid& grid, const PlotHead& head, const std::string& settings,
                         const std::function<std::string(int panel)>& panel_script);

}  // namespace longca
