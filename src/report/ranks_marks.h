#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace longca {

/// The marks that gnuplot draws for a series over ranks. A look (RanksLegend) is a dash type and
/// point of a line, or a fill of bars.

/// From 1, solid, on.
int dash_of_look(std::size_t look);
/// A fill pattern; 0: solid.
int pattern_of_look(std::size_t look);

/// A cell's value at the place of its number of ranks.
struct RanksPoint {
  double place = 0;
  double value = 0;
  double part = 0;  ///< of the value, that stands out in a stack
};

/// A series with values in a panel.
struct DrawnSeries {
  std::size_t number = 0;  ///< among those of the panel, from the left
  std::size_t of = 1;      ///< how many the panel has
  std::size_t look = 0;
  const char* color = nullptr;
  std::vector<RanksPoint> points{};
};

/// The data blocks of a panel's script, and the plot command that uses them.
struct PlotScript {
  std::string data;
  std::string plot = "plot NaN notitle";
};

void add_line(const DrawnSeries& series, PlotScript& script);
/// Beside those of the panel's other series.
void add_bars(const DrawnSeries& series, PlotScript& script);
/// Bars of the whole values, lighter, and over them their parts.
void add_stacks(const DrawnSeries& series, PlotScript& script);
/// A dashed line through points in the order of their places; across the panel, from -0.5 to 0.5,
/// if there is only one place.
void add_baseline(std::size_t number, const std::vector<RanksPoint>& points, const char* color,
                  bool is_across, PlotScript& script);

}  // namespace longca
