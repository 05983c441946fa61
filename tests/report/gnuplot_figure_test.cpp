#include "report/gnuplot_figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "report/data/figures.h"
#include "report/golden.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The script of a figure of one setting.
std::string script_of(const FigureSet& set, const std::string& name) {
  for (const Figure& figure : set.figures) {
    if (figure.name != name) continue;
    const PlotScript script = gnuplot_figure(set, figure, {{"heads", "8:2"}});
    EXPECT_GT(script.width, 0);
    EXPECT_GT(script.height, 0);
    return script.text;
  }
  ADD_FAILURE() << "no figure " << name;
  return "";
}

TEST(GnuplotFigure, GoldenBarsWithMarks) {
  const SplitRecords split = split_records(sample_records());
  const View view = make_view(split.single);
  const FigureSet set = make_device_figures(view, compare_with_dense(split.single));
  expect_golden(script_of(set, "backward"), "backward.gp");
}

TEST(GnuplotFigure, GoldenOverRanks) {
  std::vector<Record> records = over_ranks_records();
  const std::vector<Record> single = one_device_records();
  records.insert(records.end(), single.begin(), single.end());
  const SplitRecords split = split_records(records);
  const View view = make_view(split.over_ranks);
  const FigureSet set = make_rank_figures(view, split);
  expect_golden(script_of(set, "cp-backward-tflops") + script_of(set, "cp-forward-exposed") +
                    script_of(set, "cp-forward-bytes"),
                "ranks.gp");
}

/// A figure of lines, one per kernel, over three lengths.
FigureSet lines_of(int kernels, const Record& record) {
  FigureSet set;
  Figure figure{.name = "lines", .title = "Lines", .y_title = "ms", .mark = FigureMark::lines};
  FigurePanel panel{.title = "full", .note = "", .setting = {}, .mask = "full"};
  panel.ticks = {"1K", "2K", "4K"};
  for (int i = 0; i < kernels; ++i) {
    const std::string name = "kernel_" + std::to_string(i);
    const std::string color = "#00000" + std::to_string(i % 10);
    set.series.push_back({name, color, color});
    FigureSeries& series = panel.series_named(name);
    for (int x = 0; x < 3; ++x) series.points.push_back({static_cast<double>(x), 1.0 + i, &record});
  }
  figure.panels.push_back(panel);
  set.figures.push_back(figure);
  return set;
}

/// gnuplot ends at a panel whose axis has no upper end.
TEST(GnuplotFigure, APanelWithoutANumberHasAnAxisOfItsOwn) {
  const Record record = sample_records()[0];
  FigureSet set = lines_of(1, record);
  set.figures[0].shares_y = false;
  EXPECT_THAT(script_of(set, "lines"), Not(HasSubstr("set yrange [0:1]\n")));
  FigurePanel empty = set.figures[0].panels[0];
  for (FigurePoint& point : empty.series_named("kernel_0").points) point.y.reset();
  set.figures[0].panels.push_back(empty);
  EXPECT_THAT(script_of(set, "lines"),
              HasSubstr("set yrange [0:1]\nplot NaN notitle\nset yrange [0:*]\n"));
}

TEST(GnuplotFigure, DrawsEightSeriesAndCountsTheOthers) {
  const Record record = sample_records()[0];
  const std::string script = script_of(lines_of(11, record), "lines");
  EXPECT_THAT(script, HasSubstr("$line7 using"));
  EXPECT_THAT(script, Not(HasSubstr("$line8 using")));
  EXPECT_THAT(script, Not(HasSubstr("kernel_8")));
  EXPECT_THAT(script, HasSubstr("and 3 more, not drawn"));
}

TEST(GnuplotFigure, NoTwoSeriesHaveOneSymbol) {
  const Record record = sample_records()[0];
  const std::string script = script_of(lines_of(8, record), "lines");
  std::set<std::string> symbols;
  for (std::size_t at = script.find("notitle, $line"); at != script.npos;
       at = script.find("$line", at + 14)) {
    const std::size_t pt = script.find(" pt ", at) + 4;
    EXPECT_TRUE(symbols.insert(script.substr(pt, script.find(' ', pt) - pt)).second);
  }
  EXPECT_EQ(symbols.size(), 8U);
}

}  // namespace
}  // namespace longca::testing
