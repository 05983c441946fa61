#include "report/data/sparse_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace longca {
namespace {

/// The top of the scale: slower kernels, which would flatten the others, are only named.
constexpr double kMaxTimeOfDense = 2;

enum class Kind { time, mass };

using RatioOf = std::optional<double> (*)(const Record*, const Record*);

/// Time ÷ dense, or dense ÷ time.
std::optional<double> value_of(Kind kind, const Record* cell, const Record* dense,
                               RatioOf ratio_of) {
  const auto ratio = ratio_of(cell, dense);
  if (!ratio) return std::nullopt;
  return kind == Kind::time ? *ratio : 1 / *ratio;
}

void add_line(FigurePanel& panel, const DensityGroup& group, const DensityLine& line, Kind kind,
              bool is_total) {
  std::vector<FigurePoint> points;
  for (const Record* cell : line.cells) {
    const auto y =
        value_of(kind, cell, group.dense, is_total ? end_to_end_of_dense : time_of_dense);
    const auto x =
        kind == Kind::time ? cell->c.density : group.metric_at(*cell->c.density, "kept_mass");
    if (x && y) points.push_back({*x, y, cell});
  }
  if (points.empty()) return;
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  panel.series_named(line.kernel, is_total).points = std::move(points);
}

/// Removes the lines that lie above the scale, and names them.
std::string remove_beyond(FigurePanel& panel) {
  std::string names;
  std::erase_if(panel.series, [&](const FigureSeries& series) {
    double smallest = INFINITY;
    for (const FigurePoint& point : series.points) smallest = std::min(smallest, *point.y);
    if (smallest <= kMaxTimeOfDense) return false;
    if (!series.is_dashed) {
      names += fmt::format("{} {} from {}", names.empty() ? "; above:" : ",", series.name,
                           format_figure(smallest));
    }
    return true;
  });
  return names;
}

FigurePanel make_panel(const DensityTable& table, const DensityGroup& group, Kind kind) {
  FigurePanel panel{.title = fmt::format("{}, {} tokens", table.mask, format_tokens(group.tokens)),
                    .note = fmt::format("dense: {}, {} ms", group.dense->c.kernel,
                                        format_figure(*metric_of(group.dense, "time_ms"))),
                    .setting = table.setting,
                    .mask = table.mask};
  if (const std::string other = group.dense_difference(); !other.empty()) {
    panel.note += ", " + other;
  }
  for (const DensityLine& line : group.lines) {
    for (const bool is_total : {false, true}) add_line(panel, group, line, kind, is_total);
  }
  if (kind == Kind::time) panel.note += remove_beyond(panel);
  return panel;
}

/// Adds lines at the dense time and at the dense time × density.
void add_references(Figure& figure, Kind kind) {
  for (FigurePanel& panel : figure.panels) {
    panel.references.push_back(
        {.name = "fastest dense kernel", .places = {{figure.x_min, 1}, {1, 1}}});
    if (kind == Kind::mass) continue;
    panel.references.push_back(
        {.name = "dense × density", .is_dotted = true, .places = {{0, 0}, {1, 1}}});
  }
}

void set_scale(Figure& figure, Kind kind) {
  double largest = 1;
  double smallest_x = 1;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        largest = std::max(largest, *point.y);
        smallest_x = std::min(smallest_x, point.x);
      }
    }
  }
  figure.y_max = 1.08 * largest;
  if (kind == Kind::time) {
    figure.y_max = std::min(*figure.y_max, kMaxTimeOfDense);
  } else {
    figure.x_min = std::max(0.0, std::floor(smallest_x * 10 - 0.5) / 10);
  }
}

Figure make_figure(const DenseComparison& comparison, Pass pass, Kind kind) {
  const bool is_time = kind == Kind::time;
  Figure figure{.name = fmt::format("sparse-{}-{}", to_string(pass), is_time ? "time" : "mass"),
                .title = fmt::format("Block-sparse beside dense, {}: {}", to_string(pass),
                                     is_time ? "time over density" : "speed-up over kept mass"),
                .hint = is_time
                            ? "Divided by the time of the fastest dense kernel of the same length, "
                              "heads and pass. On the dotted line a kernel is as fast as that "
                              "per kept cell."
                            : "Over the kept mass, the share of full attention's probability "
                              "that lies in the kept blocks. One point per density.",
                .x_title = is_time ? "density" : "kept mass",
                .y_title = is_time ? "time ÷ dense" : "times dense speed",
                .mark = FigureMark::lines};
  for (const DensityTable& table : comparison.tables) {
    if (table.pass != pass) continue;
    for (const DensityGroup& group : table.groups) {
      if (group.dense == nullptr) continue;
      FigurePanel panel = make_panel(table, group, kind);
      if (!panel.series.empty() || (is_time && group.has_number())) {
        figure.panels.push_back(std::move(panel));
      }
    }
  }
  if (figure.has_dashes()) figure.dashed_means = "with selection and planning";
  set_scale(figure, kind);
  add_references(figure, kind);
  return figure;
}

}  // namespace

std::vector<Figure> make_sparse_figures(const DenseComparison& comparison) {
  std::vector<Figure> figures;
  for (const Pass pass : kPasses) {
    for (const Kind kind : {Kind::time, Kind::mass}) {
      Figure figure = make_figure(comparison, pass, kind);
      if (figure.has_number()) figures.push_back(std::move(figure));
    }
  }
  return figures;
}

}  // namespace longca
