#include "advise/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planted.h"

namespace longca::advise {
namespace {

TEST(Evaluation, WhereALawHoldsEstimatesAndChoicesAreRight) {
  const Evidence evidence = testing::evidence_of(testing::planted_records());
  MaskFacts masks;
  const HeldOut held_out = leave_out(evidence, masks, LeftOut::length);
  const Score score = score_of(held_out.cells, held_out.choices);
  EXPECT_EQ(score.cells, 100U);
  EXPECT_EQ(score.choices, 75U) << "25 problems: forward, backward and the step";
  EXPECT_LT(score.median_error, 0.03) << "of slice by lists that know another law";
  EXPECT_EQ(score.mean_regret, 0);
  EXPECT_EQ(score.right, 1);
  EXPECT_EQ(score.no_answer, 0U);
}

TEST(Evaluation, ASurpriseOnAMaskCostsWhatTheChoiceTakesMore) {
  auto records = testing::planted_records();
  for (Record& record : records) {  // unlike on any other mask, slice takes 3 times as long
    if (record.c.mask == "full" && record.c.kernel == "slice") record.metrics["time_ms"] *= 3;
  }
  const Evidence evidence = testing::evidence_of(records);
  MaskFacts masks;
  const HeldOut held_out = leave_out(evidence, masks, LeftOut::mask);
  const auto by_mask = scores_by_mask(held_out);
  const auto full = std::ranges::find(by_mask, "full", &NamedScore::name);
  ASSERT_NE(full, by_mask.end());
  EXPECT_NEAR(full->score.mean_regret, 1, 1e-9) << "3 ÷ 1.5 - 1";
  EXPECT_EQ(full->score.right, 0);
  const auto causal = std::ranges::find(by_mask, "causal", &NamedScore::name);
  EXPECT_EQ(causal->score.right, 1);
}

TEST(Evaluation, OneValueLeavesNothingToLearnFrom) {
  const Evidence evidence = testing::evidence_of(testing::planted_records());
  MaskFacts masks;
  EXPECT_TRUE(leave_out(evidence, masks, LeftOut::heads).cells.empty());
}

TEST(Score, CountsErrorsCoverageRegretAndWhatCouldNotRun) {
  const Case c = testing::case_of("slice", "causal", 1024);
  const std::vector<HeldOutCell> cells{{c, 10, {11, 9, 13}, 0.03}, {c, 10, {12, 11, 13}, {}}};
  const std::vector<HeldOutChoice> choices{{c, "slice", true, 0.005, true},
                                           {c, "slice", true, 0.2, true},
                                           {c, "slice", false, 0, false},
                                           {c, "", false, 0, false}};
  const Score score = score_of(cells, choices);
  EXPECT_NEAR(score.median_error, 0.1, 1e-12);
  EXPECT_NEAR(score.p90_error, 0.2, 1e-12);
  EXPECT_EQ(score.coverage, 0.5);
  EXPECT_NEAR(score.mean_regret, 0.1025, 1e-12);
  EXPECT_NEAR(score.right, 1.0 / 3, 1e-12) << "of the choices that were made";
  EXPECT_NEAR(score.right_or_tied, 2.0 / 3, 1e-12);
  EXPECT_EQ(score.peaks, 1U);
  EXPECT_NEAR(score.p90_memory_error, 0.03, 1e-12) << "of the cells that say their memory";
  EXPECT_EQ(score.could_not_run, 1U);
  EXPECT_EQ(score.no_answer, 1U);
}

}  // namespace
}  // namespace longca::advise
