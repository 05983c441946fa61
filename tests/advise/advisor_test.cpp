#include "advise/advisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "planted.h"

namespace longca::advise {
namespace {

using testing::case_of;
using testing::evidence_of;
using testing::failed_record;
using ::testing::HasSubstr;
using testing::law_ms;
using testing::planted_records;
using testing::record_of;

Advice advise(const std::vector<Record>& records, const Case& problem,
              const AdviceOptions& options = {}) {
  const Evidence evidence = evidence_of(records);
  MaskFacts masks;
  return Advisor(evidence, masks).advise(problem, options);
}

const Choice* choice_of(const Advice& advice, const std::string& kernel) {
  const auto found = std::ranges::find_if(
      advice.choices, [&](const Choice& choice) { return choice.c.kernel == kernel; });
  return found == advice.choices.end() ? nullptr : &*found;
}

std::string reason_of(const std::vector<Refusal>& refusals, const std::string& kernel) {
  const auto found = std::ranges::find(refusals, kernel, &Refusal::kernel);
  return found == refusals.end() ? "" : found->reason;
}

TEST(Advisor, AMeasuredCellStandsAsItWas) {
  const Case c = case_of("slice", "causal", 4096);
  const Advice advice = advise(planted_records(), c);
  ASSERT_EQ(advice.choices.size(), 2U);
  const Choice& best = advice.choices[0];
  EXPECT_EQ(best.c.kernel, "slice");
  EXPECT_EQ(best.basis, Basis::measured);
  EXPECT_EQ(best.time_ms.value, law_ms(c, 4e-5, 5e-5));
  EXPECT_NEAR(best.time_ms.high / best.time_ms.value, 1.01, 1e-9) << "runs differ by 1 %";
  EXPECT_EQ(best.files, std::set<std::string>{"planted.jsonl"});
  EXPECT_FALSE(advice.choices[1].tied);
}

TEST(Advisor, AnotherLengthIsInterpolated) {
  const Case c = case_of("slice", "causal", 6144);
  const Advice advice = advise(planted_records(), c);
  const Choice* best = choice_of(advice, "slice");
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->basis, Basis::interpolated);
  EXPECT_EQ(best->situation, Situation::between_lengths);
  EXPECT_NEAR(best->time_ms.value / law_ms(c, 4e-5, 5e-5), 1, 0.02);
  ASSERT_TRUE(best->peak_bytes);
  EXPECT_NEAR(best->peak_bytes->value / (1e5 * 6144), 1, 0.02);
}

TEST(Advisor, AStepIsTheSumOfItsPassesUnlessItWasMeasured) {
  auto records = planted_records();
  const Case step = case_of("slice", "causal", 4096, Pass::step);
  const double sum = 3.5 * law_ms(case_of("slice", "causal", 4096), 4e-5, 5e-5);
  EXPECT_NEAR(choice_of(advise(records, step), "slice")->time_ms.value, sum, 1e-9);
  records.push_back(record_of(step, 0.5));
  EXPECT_EQ(choice_of(advise(records, step), "slice")->time_ms.value, 0.5);
}

TEST(Advisor, NeverRecommendsAKernelThatWasWrong) {
  auto records = planted_records();
  records.push_back(
      failed_record(case_of("slice", "causal", 4096), StatusCode::wrong, "O is off by 3"));
  records.back().at = "2026-02-01T00:00:00Z";
  for (const std::int64_t tokens : {4096, 4608}) {  // there, and where that cell is the nearest
    const Advice advice = advise(records, case_of("slice", "causal", tokens));
    EXPECT_EQ(choice_of(advice, "slice"), nullptr);
    EXPECT_THAT(reason_of(advice.excluded, "slice"), HasSubstr("O is off by 3"));
    EXPECT_EQ(advice.choices[0].c.kernel, "flex");
  }
  EXPECT_NE(choice_of(advise(records, case_of("slice", "full", 4096)), "slice"), nullptr);
}

/// A window that a kernel could not express tells of windows; a mask that is none at this length
/// tells nothing.
TEST(Advisor, WhatAKernelCannotExpressItCannotOfAnotherMaskOfThatForm) {
  auto records = planted_records();
  Case window = case_of("fa3", "sliding_window", 8192);
  window.window = 1024;
  records.push_back(failed_record(window, StatusCode::unsupported, "has no windows"));
  for (const char* mask : {"causal", "full"}) {
    for (std::int64_t tokens = 1024; tokens <= 16384; tokens += tokens / 4) {
      const Case c = case_of("fa3", mask, tokens);
      records.push_back(record_of(c, law_ms(c, 3e-5, 4e-5)));
    }
  }
  const auto asked = [&](const char* mask, std::int64_t tokens) {
    Case c = case_of("fa3", mask, tokens);
    if (c.window) c.window = 1024;
    return advise(records, c);
  };
  EXPECT_THAT(reason_of(asked("sliding_window_causal", 8192).excluded, "fa3"),
              HasSubstr("has no windows"));
  EXPECT_THAT(reason_of(asked("sliding_window", 16384).excluded, "fa3"),
              HasSubstr("has no windows"));
  EXPECT_NE(choice_of(asked("sliding_window", 1024), "fa3"), nullptr) << "that is full";
  EXPECT_NE(choice_of(asked("causal", 12288), "fa3"), nullptr);
}

TEST(Advisor, WhereNoBlocksWereMeasuredItLearnsFromOtherMasks) {
  Case c = case_of("slice", "block_sparse", 8192);
  c.density = 0.5;
  c.block = 128;
  c.block_heads = "kv";
  const Advice advice = advise(planted_records(), c);
  ASSERT_NE(choice_of(advice, "slice"), nullptr);
  EXPECT_EQ(choice_of(advice, "slice")->situation, Situation::other_mask);
  EXPECT_NEAR(choice_of(advice, "slice")->time_ms.value / law_ms(c, 4e-5, 5e-5), 1, 0.05);
}

TEST(Advisor, WhatRanOutOfMemoryDoesAgainAtLongerLengths) {
  auto records = planted_records();
  records.push_back(failed_record(case_of("flex", "full", 32768), StatusCode::oom, "needs more"));
  EXPECT_THAT(reason_of(advise(records, case_of("flex", "full", 65536)).excluded, "flex"),
              HasSubstr("out of memory at 32K tokens"));
  EXPECT_NE(choice_of(advise(records, case_of("flex", "full", 24576)), "flex"), nullptr);
}

TEST(Advisor, WhatDoesNotFitTheCardIsExcluded) {
  const Case c = case_of("slice", "causal", 4096);
  auto records = planted_records();
  records.push_back(record_of(c, 0.1, 200e9));
  EXPECT_THAT(reason_of(advise(records, c).excluded, "slice"), HasSubstr("NVIDIA H200 has"));
}

TEST(Advisor, GoesByWhatKernelsCanExpressAndByNeeds) {
  const Advice advice = advise(planted_records(), case_of("slice", "document", 4096));
  EXPECT_NE(reason_of(advice.excluded, "sdpa"), "") << "full and causal only";
  EXPECT_NE(reason_of(advice.excluded, "fa1"), "") << "no GQA";
  const Advice lse =
      advise(planted_records(), case_of("slice", "causal", 4096), {.needs = {&find_need("parts")}});
  for (const Choice& choice : lse.choices) EXPECT_NE(choice.c.kernel, "fa1");
  EXPECT_THROW(find_need("lsee"), InputError);
}

TEST(Advisor, SaysWhatItDoesNotKnowAndWhatWouldFindOut) {
  const Advice advice = advise(planted_records(), case_of("slice", "causal", 4096));
  EXPECT_THAT(reason_of(advice.unknown, "fa3"), HasSubstr("no record of its forward pass"));
  EXPECT_THAT(advice.find_out, HasSubstr("longca bench -a kernel="));
  EXPECT_THAT(advice.find_out, HasSubstr("fa3"));
  EXPECT_THAT(advice.find_out, HasSubstr("mask=causal"));
  EXPECT_EQ(advice.find_out.find("slice"), std::string::npos) << "that was measured";
}

TEST(Advisor, IntervalsThatOverlapAreTied) {
  auto records = planted_records();
  const Case c = case_of("flex", "causal", 4096);
  records.push_back(record_of(c, 1.015 * law_ms(c, 4e-5, 5e-5)));
  EXPECT_TRUE(choice_of(advise(records, c), "flex")->tied);
  records.back() = record_of(c, 1.03 * law_ms(c, 4e-5, 5e-5));
  EXPECT_FALSE(choice_of(advise(records, c), "flex")->tied);
}

TEST(Advisor, AnOutlierOfASlowKernelMakesNoTie) {
  auto records = planted_records();
  const Case c = case_of("flex", "causal", 4096);
  const double fast = law_ms(c, 4e-5, 5e-5);
  records.push_back(record_of(c, 8 * fast));
  records.back().metrics["time_ci_pct"] = 290;
  for (const double share : {1.02, 1.0, 0.98, 1.0, 6.8, 0.96, 1.05}) {
    records.back().samples_ms.push_back(8 * fast * share);
  }
  const Advice advice = advise(records, c);
  const Choice* slow = choice_of(advice, "flex");
  ASSERT_NE(slow, nullptr);
  EXPECT_FALSE(slow->tied);
  EXPECT_DOUBLE_EQ(slow->time_ms.low, 8 * fast * 0.96);
  EXPECT_DOUBLE_EQ(slow->time_ms.high, 8 * fast * 6.8);
}

TEST(Advisor, ByMemoryTheSmallestIsFirst) {
  const Case c = case_of("slice", "causal", 4096);
  auto records = planted_records();
  records.push_back(record_of(c, law_ms(c, 4e-5, 5e-5), 9e9));
  const AdviceOptions options{.objective = Objective::memory};
  EXPECT_EQ(advise(records, c, options).choices[0].c.kernel, "flex");
}

}  // namespace
}  // namespace longca::advise
