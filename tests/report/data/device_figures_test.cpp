#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "report/data/figure_named.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;

/// The records stay with their figures, which point at them.
struct Drawn {
  explicit Drawn(const std::vector<Record>& records)
      : split(split_records(records)),
        view(make_view(split.single)),
        comparison(compare_with_dense(split.single)),
        set(make_device_figures(view, comparison)) {}

  const Figure& figure(const std::string& name) const { return figure_named(set, name); }

  SplitRecords split;
  View view;
  DenseComparison comparison;
  FigureSet set;
};

/// The sample's cells of one mask, forward, at more and more lengths.
std::vector<Record> records_at_lengths(int lengths) {
  std::vector<Record> records;
  for (const Record& record : sample_records()) {
    const Case& c = record.c;
    if (c.mask != "full" || c.tokens != 1024 || c.pass != Pass::forward) continue;
    for (int i = 0; i < lengths; ++i) {
      records.push_back(record);
      records.back().c.tokens = 1024 * (i + 1);
    }
  }
  return records;
}

TEST(DeviceFigures, SpeedAndMemoryOfEachPass) {
  const Drawn drawn(sample_records());
  std::vector<std::string> names;
  for (const Figure& figure : drawn.set.figures) names.push_back(figure.name);
  EXPECT_THAT(names, ElementsAre("forward", "backward", "forward-memory", "backward-memory"));
}

TEST(DeviceFigures, APanelPerMaskOverTheLengths) {
  const Drawn drawn(sample_records());
  const Figure& figure = drawn.figure("forward");
  std::vector<std::string> titles;
  for (const FigurePanel& panel : figure.panels) titles.push_back(panel.title);
  EXPECT_THAT(titles,
              ElementsAre("full", "sliding_window_causal", "causal_document", "block_sparse"));
  EXPECT_THAT(figure.panels[0].ticks, ElementsAre("1K", "4K"));
  EXPECT_EQ(figure.mark, FigureMark::bars);
}

TEST(DeviceFigures, PointsHaveTheRecordsValues) {
  const Drawn drawn(sample_records());
  for (const Figure& figure : drawn.set.figures) {
    const bool is_rate = figure.y_title == "GFLOP/s";
    EXPECT_EQ(figure.y_title, is_rate ? "GFLOP/s" : "GiB");
    for (const FigurePanel& panel : figure.panels) {
      for (const FigureSeries& series : panel.series) {
        for (const FigurePoint& point : series.points) {
          const Record& record = *point.record;
          EXPECT_EQ(record.c.kernel, series.name);
          EXPECT_EQ(format_tokens(record.c.tokens),
                    panel.ticks.at(static_cast<std::size_t>(point.x)));
          const auto value = metric_of(&record, is_rate ? "tflops" : "peak_bytes");
          ASSERT_EQ(point.y.has_value(), record.status.ok() && value.has_value());
          if (point.y) {
            EXPECT_DOUBLE_EQ(*point.y, *value * (is_rate ? 1000 : 1.0 / (1 << 30)));
          }
        }
      }
    }
  }
}

TEST(DeviceFigures, ManyLengthsGiveLinesAndNameWhatIsAbsent) {
  const Drawn few(records_at_lengths(3));
  EXPECT_EQ(few.figure("forward").mark, FigureMark::bars);
  std::vector<Record> records = records_at_lengths(6);
  records[1].status = {StatusCode::oom, "full"};
  records[2].status = {StatusCode::oom, "full"};
  records[4].status = {StatusCode::wrong, "off"};
  const Drawn many(records);
  EXPECT_EQ(many.figure("forward").mark, FigureMark::lines);
  EXPECT_EQ(absent_text(many.figure("forward").panels[0]),
            "no number: naive 2K–3K E, 5K W; block_sparse X");
}

TEST(DeviceFigures, AFarLargerSeriesDoesNotFlattenTheOthersMemory) {
  std::vector<Record> records = records_at_lengths(3);
  double others = 0;
  for (Record& record : records) {
    if (record.c.kernel != "naive") others = std::max(others, record.metrics["peak_bytes"]);
  }
  constexpr double kGiB = 1 << 30;
  for (Record& record : records) {
    const bool is_large = record.c.kernel == "naive" && record.c.tokens > 1024;
    if (record.c.kernel == "naive") record.metrics["peak_bytes"] = is_large ? 40 * others : others;
  }
  const Drawn drawn(records);
  const Figure& memory = drawn.figure("forward-memory");
  ASSERT_TRUE(memory.y_max);
  const double unit = memory.y_title == "GiB" ? kGiB : 1 << 20;
  EXPECT_NEAR(*memory.y_max, 1.1 * others / unit, 1e-9 * *memory.y_max);
  EXPECT_EQ(memory.panels[0].note, fmt::format("above: naive from 2K, up to {} {}",
                                               format_figure(40 * others / unit), memory.y_title));
  EXPECT_FALSE(drawn.figure("forward").y_max) << "speeds keep their whole scale";
  for (Record& record : records) {
    if (record.c.kernel == "naive") record.metrics["peak_bytes"] = 3 * others;
  }
  EXPECT_FALSE(Drawn(records).figure("forward-memory").y_max);
}

TEST(DeviceFigures, OneSettingIsDrawnAtATime) {
  std::vector<Record> records = sample_records();
  for (const Record& record : sample_records()) {
    records.push_back(record);
    records.back().c.heads_k = 8;
    if (!record.c.lengths) continue;
    records.push_back(records.back());
    records.back().c.lengths = "pile";
  }
  const Drawn drawn(records);
  const Figure& figure = drawn.figure("forward");
  const auto settings = settings_to_draw(figure);
  ASSERT_EQ(settings.size(), 3U);
  for (const AxisTexts& setting : settings) {
    EXPECT_EQ(setting.size(), 2U) << "masks without lengths are drawn beside the others";
    std::set<std::string> masks;
    const Figure narrow = narrowed(figure, setting);
    for (const FigurePanel& panel : narrow.panels) {
      EXPECT_TRUE(masks.insert(panel.mask).second) << "two settings of " << panel.mask;
      EXPECT_TRUE(agrees(panel.setting, setting));
    }
    EXPECT_EQ(masks.size(), 4U);
  }
}

TEST(DeviceFigures, MachinesAreSettings) {
  std::vector<Record> records = sample_records();
  for (Record record : sample_records()) {
    record.env.own()["cpu"]["model"] = "Other CPU";
    records.push_back(std::move(record));
  }
  const Drawn drawn(records);
  const auto settings = settings_to_draw(drawn.figure("forward"));
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[1][0].first, "machine");
  EXPECT_EQ(settings[1][0].second, "Other CPU, 2 cores");
}

TEST(DeviceFigures, TheSeriesThatLeadComeFirstAndEightAreDrawn) {
  std::vector<Record> records;
  for (int i = 0; i < 12; ++i) {
    for (Record record : records_at_lengths(2)) {
      if (record.c.kernel != "flash") continue;
      record.c.kernel = "kernel_" + std::to_string(i);
      record.metrics["time_ms"] = 100 - i;
      record.metrics["time_ci_pct"] = 0.01;
      records.push_back(std::move(record));
    }
  }
  records[2 * 11].status = records[2 * 11 + 1].status = {StatusCode::wrong, "off"};
  const Drawn drawn(records);
  ASSERT_EQ(drawn.set.series.size(), 12U);
  EXPECT_EQ(drawn.set.series[0].name, "kernel_10");
  EXPECT_EQ(drawn.set.series[11].name, "kernel_11") << "without a number";
  const auto shown = drawn.set.drawn_series(drawn.figure("forward"));
  ASSERT_EQ(shown.size(), kMaxSeries);
  EXPECT_EQ(shown.back().name, "kernel_3");
  std::set<std::string> colors;
  for (const SeriesStyle& style : drawn.set.series) colors.insert(style.color);
  EXPECT_EQ(colors.size(), 12U);
}

}  // namespace
}  // namespace longca::testing
