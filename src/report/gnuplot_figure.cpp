#include "report/gnuplot_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/gnuplot.h"

namespace longca {
namespace {

// In pixels of a 96 dpi screen.
constexpr int kPanelWidth = 330;
constexpr int kTickWidth = 40;
constexpr int kPanelHeight = 270;
constexpr int kMinWidth = 760;
constexpr int kMaxWidth = 1500;
constexpr int kMaxColumns = 4;
constexpr int kMargins = 90;  ///< left and right of a panel
constexpr double kMarkWidth = 8;
constexpr double kGroupWidth = 0.84;  ///< of the distance between two ticks
constexpr const char* kReferenceColor = "#606060";

// Filled circle, diamond, square, triangles, pentagon, then crosses.
constexpr std::array<int, kMaxSeries> kPoints = {7, 13, 5, 9, 11, 15, 2, 3};
// The same, open; crosses have no other.
constexpr std::array<int, kMaxSeries> kOpenPoints = {6, 12, 4, 8, 10, 14, 2, 3};

/// Draws one figure.
class Drawing {
 public:
  Drawing(const FigureSet& set, const Figure& figure)
      : figure_(figure), styles_(set.drawn_series(figure)) {
    for (const FigurePanel& panel : figure.panels) {
      ticks_ = std::max(ticks_, panel.ticks.size());
      for (const FigureReference& line : panel.references) {
        for (const auto& place : line.places) largest_ = std::max(largest_, place.y);
      }
      for (const FigureSeries& series : panel.series) {
        if (slot_of(series.name) == styles_.size()) continue;
        for (const FigurePoint& point : series.points) {
          const double top = std::max(point.stroke.value_or(0), point.diamond.value_or(0));
          largest_ = std::max({largest_, point.y.value_or(0), top});
        }
      }
    }
  }

  PlotScript script(const AxisTexts& axes) const {
    const int panels = static_cast<int>(figure_.panels.size());
    const int wide = std::max(kPanelWidth, static_cast<int>(ticks_) * kTickWidth + kMargins);
    const int columns = std::clamp(kMaxWidth / wide, 1, std::min(panels, kMaxColumns));
    const int width = std::max(columns * wide, kMinWidth);
    std::string settings = fmt::format(
        "set style fill solid noborder\nset format y '{}'\nset lmargin 9\nset rmargin 2\n"
        "set bmargin {}\nset xlabel {}\n",
        figure_.is_error ? "%.1e" : "%g", figure_.x_title.empty() ? 2 : 3.5,
        gnuplot_quoted(figure_.x_title));
    settings += y_range();
    return panels_script({panels, columns, width, kPanelHeight}, head(axes, width), settings,
                         [&](int i) {
                           return panel_script(figure_.panels[static_cast<std::size_t>(i)],
                                               width / columns, i % columns == 0);
                         });
  }

 private:
  bool has_bars() const { return figure_.mark != FigureMark::lines; }

  std::string y_range() const {
    if (!figure_.shares_y && !figure_.y_max) return "set yrange [0:*]\n";
    const double top = figure_.y_max.value_or(largest_ > 0 ? largest_ * 1.1 : 1.0);
    return fmt::format("set yrange [0:{:.6g}]\nset ytics 0,{:.6g}\n", top, plot_tic_step(top));
  }

  std::size_t slot_of(const std::string& name) const {
    const auto found = std::find_if(styles_.begin(), styles_.end(),
                                    [&](const SeriesStyle& style) { return style.name == name; });
    return static_cast<std::size_t>(found - styles_.begin());
  }

  PlotHead head(const AxisTexts& axes, int width) const {
    PlotHead head(width);
    head.add_line({{figure_.title}});
    head.add_axes(axes);
    std::vector<PlotHead::Item> key;
    for (std::size_t slot = 0; slot < styles_.size(); ++slot) {
      key.push_back({styles_[slot].name, styles_[slot].color, has_bars() ? 0 : 1,
                     has_bars() ? 0 : kPoints[slot]});
    }
    if (!figure_.dashed_means.empty()) key.push_back({figure_.dashed_means, "#808080", 2});
    add_references(key);
    if (const std::size_t more = left_out(); more > 0) {
      key.push_back({fmt::format("and {} more, not drawn", more)});
    }
    for (auto& item : mark_items([&](StatusCode code) { return figure_.shows(code); })) {
      key.push_back(std::move(item));
    }
    head.add_line(key);
    head.add_hint(figure_.hint);
    return head;
  }

  void add_references(std::vector<PlotHead::Item>& key) const {
    std::vector<std::string> names;
    for (const FigurePanel& panel : figure_.panels) {
      for (const FigureReference& line : panel.references) {
        if (std::find(names.begin(), names.end(), line.name) != names.end()) continue;
        names.push_back(line.name);
        key.push_back({line.name, kReferenceColor, line.is_dotted ? 3 : 2});
      }
    }
  }

  /// How many series with a number the figure does not draw.
  std::size_t left_out() const {
    std::vector<std::string> names;
    for (const FigurePanel& panel : figure_.panels) {
      for (const FigureSeries& series : panel.series) {
        const bool is_new = std::find(names.begin(), names.end(), series.name) == names.end();
        if (series.has_number() && is_new) names.push_back(series.name);
      }
    }
    return names.size() - styles_.size();
  }

  /// The data blocks of a panel, and the plot command that uses them.
  struct Parts {
    std::string data;
    std::string plot = "plot NaN notitle";
  };

  std::string panel_script(const FigurePanel& panel, int width, bool labels_y) const {
    std::vector<const FigureSeries*> drawn;
    for (std::size_t slot = 0; slot < styles_.size(); ++slot) {
      for (const FigureSeries& series : panel.series) {
        if (series.name == styles_[slot].name && series.has_number()) drawn.push_back(&series);
      }
    }
    Parts parts;
    // Lines of reference are drawn over bars, which would hide them, but under lines.
    if (!has_bars()) draw_references(panel, parts);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      has_bars() ? add_bars(*drawn[i], i, drawn.size(), panel, width, parts)
                 : add_line(*drawn[i], i, parts);
    }
    if (has_bars()) draw_references(panel, parts);
    std::string note = panel.note;
    const std::string absent = absent_text(panel);
    if (!absent.empty()) note += (note.empty() ? "" : "; ") + absent;
    // Without a point gnuplot finds no upper end of the axis, and draws none of the figure.
    const bool is_empty = drawn.empty() && panel.references.empty();
    return fmt::format("{}{}set ylabel {}\n{}\n{}{}\n{}", parts.data,
                       plot_title(panel.title, note, width),
                       gnuplot_quoted(labels_y ? figure_.y_title : ""), x_axis(panel),
                       is_empty ? "set yrange [0:1]\n" : "", parts.plot, is_empty ? y_range() : "");
  }

  std::string x_axis(const FigurePanel& panel) const {
    if (panel.ticks.empty()) {
      return fmt::format("set xrange [{:.6g}:1]\nset xtics {:.6g}", figure_.x_min,
                         plot_tic_step(1 - figure_.x_min));
    }
    std::string tics;
    for (std::size_t i = 0; i < panel.ticks.size(); ++i) {
      tics += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_quoted(panel.ticks[i]), i);
    }
    return fmt::format("set xrange [-0.6:{:.1f}]\nset xtics ({})",
                       static_cast<double>(panel.ticks.size()) - 0.4, tics);
  }

  void add_line(const FigureSeries& series, std::size_t number, Parts& parts) const {
    const std::size_t slot = slot_of(series.name);
    parts.data += fmt::format("$line{} << EOD\n", number);
    for (const FigurePoint& point : series.points) {
      // An empty line interrupts the curve.
      parts.data += point.y ? fmt::format("{:.6g} {:.6g}\n", point.x, *point.y) : "\n";
    }
    parts.data += "EOD\n";
    parts.plot += fmt::format(
        ", $line{} using 1:2 with linespoints lc rgb '{}' lw 2 dt {} pt {} ps 0.8 notitle", number,
        styles_[slot].color, series.is_dashed ? 2 : 1,
        series.is_dashed ? kOpenPoints[slot] : kPoints[slot]);
    add_diamonds(series, number, 0, parts);
  }

  void add_bars(const FigureSeries& series, std::size_t number, std::size_t of,
                const FigurePanel& panel, int width, Parts& parts) const {
    const double distance = kGroupWidth / static_cast<double>(of);
    const double shift = (static_cast<double>(number) + 0.5) * distance - kGroupWidth / 2;
    const std::string& color = styles_[slot_of(series.name)].color;
    std::string bars;
    std::string marks;
    std::string strokes;
    for (const FigurePoint& point : series.points) {
      const double x = point.x + shift;
      if (!point.y) {
        marks += fmt::format("{:.4f} {}\n", x, status_mark(point.record->status.code));
        continue;
      }
      bars += fmt::format("{:.4f} {:.6g} {:.6g}\n", x, *point.y, point.part);
      if (point.stroke) strokes += fmt::format("{:.4f} {:.6g}\n", x, *point.stroke);
    }
    const double wide = distance * 0.9;
    const bool is_stack = figure_.mark == FigureMark::stacks;
    parts.data += fmt::format("$bars{} << EOD\n{}EOD\n", number, bars);
    parts.plot += fmt::format(
        ", $bars{} using 1:2:({:.4f}) with boxes lc rgb '{}' fs solid {} "
        "notitle",
        number, wide, color, is_stack ? "0.3" : "1");
    if (is_stack) {
      parts.plot += fmt::format(", $bars{} using 1:3:({:.4f}) with boxes lc rgb '{}' notitle",
                                number, wide, color);
    }
    if (!strokes.empty()) {
      parts.data += fmt::format("$strokes{} << EOD\n{}EOD\n", number, strokes);
      parts.plot += fmt::format(
          ", $strokes{} using ($1-{:.4f}):2:({:.4f}):(0) with vectors nohead "
          "lc rgb '#000000' lw 2 notitle",
          number, wide / 2, wide);
    }
    const double ticks = static_cast<double>(panel.ticks.size());
    if (!marks.empty() && distance * (width - kMargins) / ticks >= kMarkWidth) {
      parts.data += fmt::format("$marks{} << EOD\n{}EOD\n", number, marks);
      parts.plot += fmt::format(
          ", $marks{} using 1:(0):2 with labels offset 0,0.5 tc rgb '{}' notitle", number, color);
    }
    add_diamonds(series, number, shift, parts);
  }

  static void add_diamonds(const FigureSeries& series, std::size_t number, double shift,
                           Parts& parts) {
    std::string places;
    for (const FigurePoint& point : series.points) {
      if (!point.y || !point.diamond) continue;
      places += fmt::format("{:.4f} {:.6g}\n", point.x + shift, *point.diamond);
    }
    if (places.empty()) return;
    parts.data += fmt::format("$diamonds{} << EOD\n{}EOD\n", number, places);
    parts.plot += fmt::format(
        ", $diamonds{0} using 1:2 with points pt 13 ps 0.7 lc rgb '#ffffff' notitle"
        ", $diamonds{0} using 1:2 with points pt 12 ps 0.7 lc rgb '#404040' notitle",
        number);
  }

  static void draw_references(const FigurePanel& panel, Parts& parts) {
    for (std::size_t i = 0; i < panel.references.size(); ++i) {
      const FigureReference& line = panel.references[i];
      const bool is_across = line.places.size() == 1;
      parts.data += fmt::format("$reference{} << EOD\n", i);
      for (const auto& place : line.places) {
        parts.data += is_across ? fmt::format("-0.5 {0:.6g}\n0.5 {0:.6g}\n", place.y)
                                : fmt::format("{:.6g} {:.6g}\n", place.x, place.y);
      }
      parts.data += "EOD\n";
      parts.plot +=
          fmt::format(", $reference{} using 1:2 with lines lc rgb '{}' lw 1.8 dt {} notitle", i,
                      kReferenceColor, line.is_dotted ? 3 : 2);
    }
  }

  const Figure& figure_;
  std::vector<SeriesStyle> styles_;  // of the series drawn, by slot
  std::size_t ticks_ = 1;            // the most that a panel has
  double largest_ = 0;
};

}  // namespace

PlotScript gnuplot_figure(const FigureSet& set, const Figure& figure, const AxisTexts& axes) {
  return Drawing(set, figure).script(axes);
}

}  // namespace longca
