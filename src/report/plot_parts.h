#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/view.h"

namespace longca {

// What the figures of write_plots share: colours, scales, the lines above the panels, the grid of
// panels, the lines and bars of a series.

/// "#rrggbb" of the n-th series; the same as on the page.
const char* plot_color(std::size_t n);
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
    const char* color = nullptr;  ///< of the square or stroke; none without
    int dash = 0;                 ///< above 0: a stroke of this gnuplot dash type, no square
    bool has_square = false;      ///< a square even with a stroke
    int pattern = 0;              ///< above 0: fills the square with this gnuplot pattern
  };

  /// `width` of the figure, in pixels of a 96 dpi screen.
  explicit PlotHead(int width) : width_(width) {}

  /// Adds items from left to right, on as many lines as they need. The first line is larger.
  void add_line(const std::vector<Item>& items);
  /// Adds a line of axes: "heads 64:8   dim 128".
  void add_axes(const AxisTexts& axes);
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

/// Draws a figure into the file: the head above the panels. `settings` are gnuplot commands for all
/// panels, `panel_script` those of one.
void draw_panels(const std::filesystem::path& file, const PanelGrid& grid, const PlotHead& head,
                 const std::string& settings,
                 const std::function<std::string(int panel)>& panel_script);

/// Draws a figure as STEM.png, STEM.svg and STEM.pdf in the directory, and appends their paths.
void draw_all_formats(const std::filesystem::path& directory, const std::string& stem,
                      const std::function<void(const std::filesystem::path&)>& draw,
                      std::vector<std::filesystem::path>& files);

// The marks of a series. Its look (RanksLegend) is a dash type and point of a line, or a fill of
// bars.

/// A gnuplot dash type; 1 is solid.
int dash_of_look(std::size_t look);
/// A gnuplot fill pattern; 0 is solid.
int pattern_of_look(std::size_t look);

struct PlotPoint {
  double x = 0;
  double y = 0;
  double part = 0;  ///< of y: the darker part of a stack
};

/// A series with values in a panel.
struct DrawnSeries {
  std::size_t number = 0;  ///< among those of the panel, from the left
  std::size_t of = 1;      ///< how many the panel has
  std::size_t look = 0;
  const char* color = nullptr;
  std::vector<PlotPoint> points{};
};

/// The data blocks of a panel's script, and the plot command that uses them.
struct PlotScript {
  std::string data;
  std::string plot = "plot NaN notitle";
};

void add_line(const DrawnSeries& series, PlotScript& script);
/// Adds bars beside those of the panel's other series.
void add_bars(const DrawnSeries& series, PlotScript& script);
/// Adds light bars of the whole values and, over them, bars of their parts.
void add_stacks(const DrawnSeries& series, PlotScript& script);
/// Adds a dashed line through points of ascending x; if `is_across`, from -0.5 to 0.5 at the y of
/// the only point.
void add_baseline(std::size_t number, const std::vector<PlotPoint>& points, const char* color,
                  bool is_across, PlotScript& script);

}  // namespace longca
