#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "report/data/figure_named.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

struct Drawn {
  explicit Drawn(const std::vector<Record>& records)
      : split(split_records(records)),
        view(make_view(split.over_ranks)),
        set(make_rank_figures(view, split)) {}

  const Figure& figure(const std::string& name) const { return figure_named(set, name); }

  SplitRecords split;
  View view;
  FigureSet set;
};

std::vector<std::string> series_names(const FigurePanel& panel) {
  std::vector<std::string> names;
  for (const FigureSeries& series : panel.series) names.push_back(series.name);
  return names;
}

std::vector<Record> with_one_device() {
  std::vector<Record> records = over_ranks_records();
  const std::vector<Record> single = one_device_records();
  records.insert(records.end(), single.begin(), single.end());
  return records;
}

TEST(RankFigures, FiveQuantitiesOfEachPass) {
  const Drawn drawn(over_ranks_records());
  std::vector<std::string> names;
  for (const Figure& figure : drawn.set.figures) names.push_back(figure.name);
  EXPECT_THAT(names, ElementsAre("cp-forward-tflops", "cp-forward-exposed", "cp-forward-bytes",
                                 "cp-forward-imbalance", "cp-forward-error", "cp-backward-tflops",
                                 "cp-backward-exposed", "cp-backward-bytes",
                                 "cp-backward-imbalance", "cp-backward-error"));
}

TEST(RankFigures, HintsExplainTheMarksThatAreThere) {
  std::vector<Record> records = over_ranks_records();
  EXPECT_THAT(Drawn(with_one_device()).figure("cp-forward-tflops").hint, HasSubstr("Grey: "));
  EXPECT_THAT(Drawn(records).figure("cp-forward-bytes").hint,
              AllOf(HasSubstr("Counted"), HasSubstr("Stroke: "), HasSubstr("Diamond: ")));
  std::erase_if(records, [](const Record& record) { return record.c.ranks == 1; });
  for (Record& record : records) {
    record.metrics.erase("bytes_formula");
    record.metrics.erase("bytes_least");
    record.metrics.erase("time_imbalance");
  }
  const Drawn drawn(records);
  EXPECT_EQ(drawn.figure("cp-forward-tflops").hint, "");
  EXPECT_EQ(drawn.figure("cp-forward-bytes").hint, "Counted, by the rank that sends most.");
  EXPECT_THAT(drawn.figure("cp-forward-imbalance").hint, Not(HasSubstr("Diamond")));
}

TEST(RankFigures, TheDiamondSaysWhetherItsTimeIsMeasured) {
  const auto hint_of = [](const std::vector<Record>& records) {
    return Drawn(records).figure("cp-forward-imbalance").hint;
  };
  std::vector<Record> records = over_ranks_records();
  EXPECT_THAT(hint_of(records), HasSubstr("Diamond: measured time of the steps"));
  records[0].c.platform = "h100x8_ib400";
  EXPECT_THAT(hint_of(records), HasSubstr("Diamond: measured or simulated time of the steps"));
  for (Record& record : records) record.c.platform = "h100x8_ib400";
  EXPECT_THAT(hint_of(records), HasSubstr("Diamond: simulated time of the steps"));
}

TEST(RankFigures, ASeriesPerSchemeAndVariantOverTheRanks) {
  std::vector<Record> records = over_ranks_records();
  std::reverse(records.begin(), records.end());
  const Drawn drawn(records);
  for (const FigurePanel& panel : drawn.figure("cp-forward-tflops").panels) {
    EXPECT_THAT(series_names(panel),
                UnorderedElementsAre("ulysses", "ring_p2p · zigzag", "ring_p2p · balanced", "usp"));
    EXPECT_THAT(panel.ticks, ElementsAre("1", "2", "4"));
    EXPECT_EQ(panel.note, "1K tokens per rank");
    for (const FigureSeries& series : panel.series) {
      for (std::size_t i = 0; i < series.points.size(); ++i) {
        EXPECT_EQ(series.points[i].x, static_cast<double>(i));
      }
    }
  }
}

TEST(RankFigures, NoTwoSeriesShareAColour) {
  for (const auto& records : {over_ranks_records(), two_kernels_records()}) {
    const Drawn drawn(records);
    std::set<std::string> colors;
    for (const SeriesStyle& style : drawn.set.series) colors.insert(style.color);
    EXPECT_EQ(colors.size(), drawn.set.series.size());
  }
}

TEST(RankFigures, SeveralKernelsAreNamed) {
  const Drawn drawn(two_kernels_records());
  const FigurePanel& full = drawn.figure("cp-forward-tflops").panels[0];
  EXPECT_THAT(series_names(full), ::testing::Contains("usp · flash"));
  EXPECT_THAT(series_names(full), ::testing::Contains("usp · naive · nccl"));
}

TEST(RankFigures, BarsNameWhatIsAbsentEverywhereAndLinesEachPlace) {
  std::vector<Record> records = over_ranks_records();
  for (Record& record : records) {
    if (record.c.scheme == "usp" && record.c.ranks == 4) record.status = {StatusCode::oom, "full"};
    if (record.c.shard == "balanced") record.status = {StatusCode::crash, "lost"};
  }
  EXPECT_EQ(absent_text(Drawn(records).figure("cp-forward-tflops").panels[0]),
            "no number: ring_p2p · balanced C");
  for (const Record& record : over_ranks_records()) {
    if (record.c.ranks != 4) continue;
    records.push_back(record);
    records.back().c.ranks = 8;
    records.back().c.tokens *= 2;
  }
  EXPECT_EQ(absent_text(Drawn(records).figure("cp-forward-tflops").panels[0]),
            "no number: ulysses 4–8 X; ring_p2p · balanced 1–4 C; usp 4 E");
}

TEST(RankFigures, RatesStandBesideTheSameKernelWithoutCommunication) {
  const Drawn drawn(with_one_device());
  const FigurePanel& panel = drawn.figure("cp-forward-tflops").panels[0];
  ASSERT_EQ(panel.references.size(), 1U);
  EXPECT_EQ(panel.references[0].name, "one device");
  ASSERT_EQ(panel.references[0].places.size(), 3U);
  for (const auto& place : panel.references[0].places) EXPECT_DOUBLE_EQ(place.y, 510);
}

TEST(RankFigures, CommunicationStandsOnTheSteps) {
  const Drawn drawn(over_ranks_records());
  const Figure& figure = drawn.figure("cp-forward-exposed");
  EXPECT_EQ(figure.mark, FigureMark::stacks);
  EXPECT_FALSE(figure.shares_y);
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        if (!point.y) continue;
        EXPECT_LE(point.part, *point.y) << "noise below zero is no bar";
        if (point.x > 0) {
          EXPECT_NEAR(1 - point.part / *point.y, 0.1, 1e-9);
        }
      }
    }
  }
}

TEST(RankFigures, BytesStandBesideTheFormula) {
  const Drawn drawn(over_ranks_records());
  std::vector<std::string> off;
  for (const FigurePanel& panel : drawn.figure("cp-forward-bytes").panels) {
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        if (!point.y) continue;
        ASSERT_TRUE(point.stroke && point.diamond);
        if (*point.stroke != *point.y) off.push_back(series.name);
      }
    }
  }
  EXPECT_THAT(off, ElementsAre("ring_p2p · zigzag"));
}

TEST(RankFigures, ScalingsAreSettings) {
  std::vector<Record> records = over_ranks_records();
  for (Record record : over_ranks_records()) {
    record.c.tokens = 65536;
    records.push_back(std::move(record));
  }
  const Drawn drawn(records);
  const auto settings = settings_to_draw(drawn.figure("cp-forward-tflops"));
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].back().second, "64K tokens");
  EXPECT_EQ(settings[1].back().second, "1K tokens per rank");
}

}  // namespace
}  // namespace longca::testing
