#include "report/ranks_figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "report/plot_parts.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

/// The forward figure of each mask.
std::vector<RanksFigure> forward_figures(const SplitRecords& split) {
  std::vector<RanksFigure> figures = make_ranks_figures(make_view(split.over_ranks), split);
  std::erase_if(figures, [](const RanksFigure& f) { return f.pass != Pass::forward; });
  return figures;
}

std::vector<std::string> texts_of(const RanksLegend& legend) {
  std::vector<std::string> texts;
  for (const RanksLegend::Entry& entry : legend.entries()) texts.push_back(entry.text);
  return texts;
}

bool is_ok(const Record& record) {
  return record.status.ok();
}

TEST(RanksLegend, ListsSchemesAndVariantsSeparatelyIfThatIsShorter) {
  const SplitRecords split = split_records(two_kernels_records());
  const RanksFigure figure = forward_figures(split)[0];
  const RanksLegend legend(figure, is_ok);
  EXPECT_EQ(texts_of(legend), (std::vector<std::string>{"ulysses", "ring_p2p", "usp", "naive peer",
                                                        "flash", "naive nccl"}));
  std::map<std::string, std::set<std::size_t>> looks;
  for (const RanksSeries& series : figure.panels[0].series) {
    looks[series.variant].insert(legend.look_of(series));
  }
  EXPECT_EQ(looks["naive peer"], std::set<std::size_t>{0});
  EXPECT_EQ(looks["flash"], std::set<std::size_t>{1});
  EXPECT_EQ(looks["naive nccl"], std::set<std::size_t>{2});
}

TEST(RanksLegend, ListsOnlyWhatHasAValue) {
  const SplitRecords split = split_records(two_kernels_records());
  const RanksLegend legend(forward_figures(split)[1], is_ok);
  EXPECT_EQ(texts_of(legend), (std::vector<std::string>{"ulysses naive peer", "ring_p2p naive peer",
                                                        "usp naive peer", "usp naive nccl"}));
}

TEST(RanksLegend, ListsFewSeriesOneByOne) {
  const SplitRecords split = split_records(over_ranks_records());
  const RanksFigure figure = forward_figures(split)[0];
  const RanksLegend legend(figure, is_ok);
  EXPECT_EQ(texts_of(legend),
            (std::vector<std::string>{"ulysses", "ring_p2p zigzag", "ring_p2p balanced", "usp"}));
  std::vector<std::size_t> looks;
  for (const RanksSeries& series : figure.panels[0].series) looks.push_back(legend.look_of(series));
  EXPECT_EQ(looks, (std::vector<std::size_t>{0, 0, 1, 0}));
}

TEST(AbsentText, ListsOnceWhatAllSchemesLack) {
  const SplitRecords split = split_records(two_kernels_records());
  const auto figures = forward_figures(split);
  EXPECT_EQ(absent_text(figures[0].panels[0]), "");
  EXPECT_EQ(absent_text(figures[1].panels[0]), "no number: flash X (all 3 schemes)");
}

TEST(AbsentText, NamesTheSchemesThatLackAndTheirRanks) {
  std::vector<Record> records = over_ranks_records();
  for (Record& record : records) {
    if (record.c.scheme == "usp" && record.c.ranks == 4) record.status = {StatusCode::oom, "full"};
    if (record.c.shard == "balanced") record.status = {StatusCode::crash, "lost"};
  }
  const SplitRecords split = split_records(records);
  EXPECT_EQ(absent_text(forward_figures(split)[0].panels[0]),
            "no number: ulysses 4 X; balanced 1 C, 2 C, 4 C (ring_p2p); usp 4 E");
}

TEST(PlotParts, ABaselineOfOneNumberOfRanksCrossesThePanel) {
  PlotScript across;
  add_baseline(0, {{0, 500}}, "#606060", true, across);
  EXPECT_EQ(across.data, "$baseline0 << EOD\n-0.5 500\n0.5 500\nEOD\n");
  PlotScript along;
  add_baseline(1, {{0, 500}, {1, 490}}, "#606060", false, along);
  EXPECT_EQ(along.data, "$baseline1 << EOD\n0 500\n1 490\nEOD\n");
}

TEST(RanksFigure, SeriesHaveTheirCellsByRanks) {
  std::vector<Record> records = over_ranks_records();
  std::reverse(records.begin(), records.end());
  const SplitRecords split = split_records(records);
  const View view = make_view(split.over_ranks);
  const auto figures = make_ranks_figures(view, split);
  ASSERT_EQ(figures.size(), 4U);
  for (const RanksFigure& figure : figures) {
    ASSERT_EQ(figure.panels.size(), 1U);
    EXPECT_EQ(figure.panels[0].ranks, (std::vector<int>{1, 2, 4}));
    EXPECT_EQ(figure.panels[0].series.size(), 4U);
    for (const RanksSeries& series : figure.panels[0].series) {
      ASSERT_EQ(series.cells.size(), 3U);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(figure.panels[0].x_of(*series.cells[i]), static_cast<double>(i));
      }
    }
  }
}

}  // namespace
}  // namespace longca::testing
