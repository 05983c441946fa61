#include "report/data/sparse_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "report/sample_records.h"
#include "report/sparse_records.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<Figure>& figures) {
  std::vector<std::string> names;
  for (const Figure& figure : figures) names.push_back(figure.name);
  return names;
}

/// 64:8 heads, blocks of 64, forward.
std::vector<Record> small_records() {
  std::vector<Record> records = sparse_records();
  std::erase_if(records, [](const Record& record) {
    return record.c.heads_k != 8 || record.c.pass != Pass::forward ||
           record.c.block.value_or(64) != 64;
  });
  return records;
}

const FigureSeries* series_of(const FigurePanel& panel, const std::string& name, bool is_dashed) {
  for (const FigureSeries& series : panel.series) {
    if (series.name == name && series.is_dashed == is_dashed) return &series;
  }
  return nullptr;
}

TEST(SparseFigures, TimeOverDensityAndSpeedOverKeptMass) {
  const auto records = joined(small_records(), selected_records());
  const auto comparison = compare_with_dense(records);
  const auto figures = make_sparse_figures(comparison);
  EXPECT_THAT(names_of(figures), ElementsAre("sparse-forward-time", "sparse-forward-mass"));
  EXPECT_EQ(settings_to_draw(figures[0]).size(), 2U) << "selection random and scores";
  EXPECT_EQ(settings_to_draw(figures[1]).size(), 1U);
}

TEST(SparseFigures, APanelNamesInputsThatDifferFromTheDenseCells) {
  std::vector<Record> records = small_records();
  for (Record& record : records) {
    if (record.c.density) record.c.inputs = "clustered";
  }
  const auto comparison = compare_with_dense(records);
  EXPECT_EQ(make_sparse_figures(comparison)[0].panels[0].note,
            "dense: fa3, 50.3 ms, inputs normal; above: naive from 5.02");
}

TEST(SparseFigures, APanelPerLengthSaysWhatItIsComparedWith) {
  const auto records = small_records();
  const auto comparison = compare_with_dense(records);
  const auto figures = make_sparse_figures(comparison);
  ASSERT_EQ(figures[0].panels.size(), 2U);
  const FigurePanel& panel = figures[0].panels[0];
  EXPECT_EQ(panel.title, "block_sparse, 32K tokens");
  EXPECT_EQ(panel.note, "dense: fa3, 50.3 ms; above: naive from 5.02");
  EXPECT_EQ(series_of(panel, "naive", false), nullptr) << "it would flatten the others";
  const FigureSeries* slice = series_of(panel, "slice", false);
  ASSERT_NE(slice, nullptr);
  ASSERT_EQ(slice->points.size(), 3U);
  const double wanted[] = {0.2488, 0.592, 0.9352};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(*slice->points[i].y, wanted[i], 1e-9);
  EXPECT_TRUE(figures[0].dashed_means.empty());
  EXPECT_EQ(panel.references.size(), 2U);
}

TEST(SparseFigures, SelectionAndPlanningAreDashed) {
  const auto records = joined(small_records(), selected_records());
  const auto comparison = compare_with_dense(records);
  const Figure mass = make_sparse_figures(comparison)[1];
  ASSERT_EQ(mass.panels.size(), 1U);
  const FigureSeries* alone = series_of(mass.panels[0], "slice", false);
  const FigureSeries* in_all = series_of(mass.panels[0], "slice", true);
  ASSERT_TRUE(alone != nullptr && in_all != nullptr);
  EXPECT_EQ(mass.dashed_means, "with selection and planning");
  const double masses[] = {0.6, 0.8, 0.92};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(alone->points[i].x, masses[i], 1e-9);
    EXPECT_GT(*alone->points[i].y, *in_all->points[i].y);
  }
  EXPECT_NEAR(*alone->points[1].y, 1 / 0.2488, 1e-9);
}

TEST(SparseFigures, NoneWithoutDenseCells) {
  const auto selected = selected_records();
  EXPECT_TRUE(make_sparse_figures(compare_with_dense(selected)).empty());
  const auto sample = sample_records();
  EXPECT_TRUE(make_sparse_figures(compare_with_dense(sample)).empty());
}

}  // namespace
}  // namespace longca::testing
