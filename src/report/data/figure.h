#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "report/data/choices.h"

namespace longca {

/// What a figure shows, computed once from the records. gnuplot (report/gnuplot_figure.h) and the
/// page (report/html/figure.js) only place it: they leave out what is filtered, and draw the rest.
///
///     FigureSet      series in order of weight, each with its colour
///       Figure       one quantity of one pass; axes, kind of marks
///         panels     one per mask and setting; a drawing shows those of one setting
///           series   the cells of one kernel or scheme, ascending in x

/// One cell.
struct FigurePoint {
  double x = 0;             ///< the index into FigurePanel::ticks, if the panel has ticks
  std::optional<double> y;  ///< none: no number, the mark of the record's status shows instead
  const Record* record = nullptr;
  double part = 0;                  ///< of y: the darker part of a stack
  std::optional<double> stroke{};   ///< a stroke across the bar at this y
  std::optional<double> diamond{};  ///< a diamond at this y
};

struct FigureSeries {
  std::string name;
  /// A second line of the series, dashed and with open marks: Figure::dashed_means says what for.
  bool is_dashed = false;
  std::vector<FigurePoint> points{};
  /// The cells without a number that no mark in the plot shows: "64K–128K E", or "X" for all.
  std::string absent{};

  bool has_number() const;
};

/// A grey line that belongs to no series.
struct FigureReference {
  std::string name;
  bool is_dotted = false;
  struct Place {
    double x, y;
  };
  std::vector<Place> places{};  ///< ascending x; a single one reaches across the panel
};

struct FigurePanel {
  std::string title;
  std::string note;                  ///< below the title: what it is compared with
  AxisTexts setting;                 ///< drawn where this agrees with the choice (choices.h)
  std::string mask;                  ///< for filters
  std::vector<std::string> ticks{};  ///< names of x = 0, 1, …; empty: x is a number
  std::vector<FigureSeries> series{};
  std::vector<FigureReference> references{};

  FigureSeries& series_named(const std::string& name, bool is_dashed = false);
  /// The tick's index; appends it if the panel does not have it.
  double x_of(const std::string& tick);
};

enum class FigureMark {
  bars,    ///< side by side
  stacks,  ///< the same, `part` darker
  lines,
};
std::string_view to_string(FigureMark mark);

struct Figure {
  std::string name;   ///< of files: "forward-memory"
  std::string title;  ///< "Forward: speed"
  std::string hint{};
  std::string x_title{};
  std::string y_title;
  FigureMark mark = FigureMark::bars;
  bool shares_y = true;           ///< one scale for all panels
  bool is_error = false;          ///< y has an exponent
  double x_min = 0;               ///< of panels without ticks, which end at 1
  std::optional<double> y_max{};  ///< of the scale; what lies above is not drawn
  std::string dashed_means{};     ///< "with selection and planning"; "" if no line is dashed
  std::vector<FigurePanel> panels{};

  bool has_number() const;
  bool has_dashes() const;
  /// Whether a point without a number has the status.
  bool shows(StatusCode status) const;
};

/// A series' name and its colours, which no other series of the set has.
struct SeriesStyle {
  std::string name;
  std::string color;  ///< "#rrggbb"
  std::string dark;   ///< the same on a dark page
};

/// So many series are drawn at a time.
inline constexpr std::size_t kMaxSeries = 8;

struct FigureSet {
  std::vector<SeriesStyle> series;  ///< those that matter most first (series_by_weight)
  std::vector<Figure> figures;

  /// The series to draw: the first kMaxSeries that have a number in the figure.
  std::vector<SeriesStyle> drawn_series(const Figure& figure) const;
};

/// The figure without the panels of other settings, and without panels that have no cell.
Figure narrowed(const Figure& figure, const AxisTexts& choice);
/// Each setting for which there is something to draw: those of panels, without the ones that agree
/// with a longer one.
std::vector<AxisTexts> settings_to_draw(const Figure& figure);

/// Orders the panels by mask, gives the figure lines instead of bars if some panel has more ticks
/// than bars of kMaxSeries have room for, and lists what is absent. For complete panels.
void finish(Figure& figure);

/// "no number: naive 64K E; fa1, flex X"; "" if there is nothing to say.
std::string absent_text(const FigurePanel& panel);

}  // namespace longca
