#include "advise/cell_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planted.h"

namespace longca::advise {
namespace {

using testing::case_of;
using testing::law_ms;

constexpr std::int64_t kLengths[] = {1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384};
const std::vector<std::string> kMasks = {"full", "causal", "sliding_window_causal",
                                         "causal_document", "prefix_lm_causal"};

/// Cells by a law with a noise of that standard deviation, without the length `left_out`.
std::vector<ModelCell> cells_with(double noise, std::int64_t left_out, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> factor(0, noise);
  MaskFacts masks;
  std::vector<ModelCell> cells;
  for (const std::string& mask : kMasks) {
    for (const std::int64_t tokens : kLengths) {
      const Case c = case_of("slice", mask, tokens);
      const double value = law_ms(c, 4e-5, 6e-5) * std::exp(factor(random));
      if (tokens != left_out) cells.push_back({c, masks.work(c), value});
    }
  }
  return cells;
}

TEST(CellModel, FollowsALawBetweenLengthsAndToOtherMasks) {
  MaskFacts masks;
  const CellModel model(cells_with(0, 4096));
  const Case between = case_of("slice", "causal", 4096);
  const auto found = model.predict(between, masks.work(between));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->situation, Situation::between_lengths);
  EXPECT_NEAR(found->value / law_ms(between, 4e-5, 6e-5), 1, 0.01);
  const Case other = case_of("slice", "document", 4096);
  const auto unseen = model.predict(other, masks.work(other));
  ASSERT_TRUE(unseen);
  EXPECT_EQ(unseen->situation, Situation::other_mask);
  EXPECT_NEAR(unseen->value / law_ms(other, 4e-5, 6e-5), 1, 0.05);
}

TEST(CellModel, NoIntervalIsNarrowerThanRunsDiffer) {
  MaskFacts masks;
  const CellModel model(cells_with(0, 4096));
  const Case c = case_of("slice", "full", 4096);
  const auto found = model.predict(c, masks.work(c));
  ASSERT_TRUE(found);
  EXPECT_GE(found->high / found->value, 1.0099);
  EXPECT_LE(found->low / found->value, 1 / 1.0099);
}

TEST(CellModel, IntervalsHoldNineOfTenCellsWhateverTheNoise) {
  for (const double noise : {0.03, 0.2}) {
    MaskFacts masks;
    int inside = 0, all = 0;
    for (unsigned seed = 1; seed <= 12; ++seed) {
      const CellModel model(cells_with(noise, 4096, seed));
      std::mt19937 random(1000 + seed);
      std::normal_distribution<double> factor(0, noise);
      for (const std::string& mask : kMasks) {
        const Case c = case_of("slice", mask, 4096);
        const auto found = model.predict(c, masks.work(c));
        ASSERT_TRUE(found);
        const double value = law_ms(c, 4e-5, 6e-5) * std::exp(factor(random));
        inside += value >= found->low && value <= found->high ? 1 : 0;
        ++all;
      }
    }
    EXPECT_GE(inside, all * 8 / 10) << noise;
    EXPECT_LT(inside, all) << "intervals are no wider than they must be: " << noise;
  }
}

TEST(CellModel, SaysNothingFromTooFewCells) {
  auto cells = cells_with(0, 4096);
  cells.resize(CellModel::kMinCells - 1);
  MaskFacts masks;
  const Case c = case_of("slice", "causal", 4096);
  EXPECT_FALSE(CellModel(cells).predict(c, masks.work(c)));
}

TEST(CellModel, IsWiderTheFurtherTheCellIsFromWhatWasMeasured) {
  MaskFacts masks;
  const CellModel model(cells_with(0.05, 4096));
  const auto width = [&](const Case& c) {
    const auto found = model.predict(c, masks.work(c)).value();
    return found.high / found.low;
  };
  const double between = width(case_of("slice", "causal", 4096));
  EXPECT_LT(between, width(case_of("slice", "causal", 131072)));
  Case heads = case_of("slice", "causal", 4096);
  heads.heads_k = 64;
  EXPECT_LE(between, width(heads));
}

}  // namespace
}  // namespace longca::advise
