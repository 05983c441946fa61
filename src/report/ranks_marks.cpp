#include "report/ranks_marks.h"

#include <fmt/format.h>

#include <array>

namespace longca {
namespace {

constexpr int kDashes = 5;
// Filled circle, diamond, square, triangles.
constexpr std::array kPoints = {7, 13, 5, 9, 11};
constexpr std::array kPatterns = {0, 4, 5, 6, 7, 2};
constexpr double kGroupWidth = 0.84;

std::string fill_of_look(std::size_t look) {
  const int pattern = pattern_of_look(look);
  return pattern == 0 ? "solid" : fmt::format("pattern {}", pattern);
}

double slot_width(const DrawnSeries& series) {
  return kGroupWidth / static_cast<double>(series.of);
}

/// With a little space to the next.
double bar_width(const DrawnSeries& series) {
  return slot_width(series) * 0.9;
}

void add_bar_data(const DrawnSeries& series, PlotScript& script) {
  const double shift =
      (static_cast<double>(series.number) + 0.5) * slot_width(series) - kGroupWidth / 2;
  script.data += fmt::format("$bars{} << EOD\n", series.number);
  for (const RanksPoint& point : series.points) {
    script.data +=
        fmt::format("{:.4f} {:.6g} {:.6g}\n", point.place + shift, point.value, point.part);
  }
  script.data += "EOD\n";
}

}  // namespace

int dash_of_look(std::size_t look) {
  return static_cast<int>(look % kDashes) + 1;
}

int pattern_of_look(std::size_t look) {
  return kPatterns[look % kPatterns.size()];
}

void add_line(const DrawnSeries& series, PlotScript& script) {
  script.data += fmt::format("$line{} << EOD\n", series.number);
  for (const RanksPoint& point : series.points) {
    script.data += fmt::format("{} {:.6g}\n", point.place, point.value);
  }
  script.data += "EOD\n";
  script.plot += fmt::format(
      ", $line{} using 1:2 with linespoints lc rgb '{}' lw 2 dt {} pt {} ps 0.9 notitle",
      series.number, series.color, dash_of_look(series.look),
      kPoints[series.look % kPoints.size()]);
}

void add_bars(const DrawnSeries& series, PlotScript& script) {
  add_bar_data(series, script);
  script.plot +=
      fmt::format(", $bars{} using 1:2:({:.4f}) with boxes lc rgb '{}' fs {} notitle",
                  series.number, bar_width(series), series.color, fill_of_look(series.look));
}

void add_stacks(const DrawnSeries& series, PlotScript& script) {
  add_bar_data(series, script);
  script.plot += fmt::format(
      ", $bars{0} using 1:2:({1:.4f}) with boxes lc rgb '{2}' fs solid 0.3 notitle"
      ", $bars{0} using 1:3:({1:.4f}) with boxes lc rgb '{2}' fs {3} notitle",
      series.number, bar_width(series), series.color, fill_of_look(series.look));
}

void add_baseline(std::size_t number, const std::vector<RanksPoint>& points, const char* color,
                  bool is_across, PlotScript& script) {
  script.data += fmt::format("$baseline{} << EOD\n", number);
  for (const RanksPoint& point : points) {
    if (is_across) {
      script.data += fmt::format("-0.5 {0:.6g}\n0.5 {0:.6g}\n", point.value);
    } else {
      script.data += fmt::format("{} {:.6g}\n", point.place, point.value);
    }
  }
  script.data += "EOD\n";
  script.plot += fmt::format(", $baseline{} using 1:2 with {} lc rgb '{}' lw 1.8 dt 2 notitle",
                             number, is_across ? "lines" : "linespoints pt 2 ps 0.5", color);
}

}  // namespace longca
