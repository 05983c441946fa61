#include "advise/degrees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "planted.h"

namespace longca::advise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kFour[] = {4096, 4096};

Advice answer_with(std::vector<Choice> choices) {
  return {.problem = testing::case_of("", "causal", 4096, Pass::step),
          .choices = std::move(choices)};
}

Choice choice_taking(const std::string& kernel, double ms) {
  return {.c = testing::case_of(kernel, "causal", 4096, Pass::step), .time_ms = {ms, ms, ms}};
}

TEST(Degrees, ArePowersOfTwoThatDivideTheGpusAndAllOfThem) {
  EXPECT_THAT(degrees_of(1), ElementsAre(1));
  EXPECT_THAT(degrees_of(8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(degrees_of(12), ElementsAre(1, 2, 4, 12));
  EXPECT_THAT(degrees_of(7), ElementsAre(1, 7));
}

TEST(Degrees, AStepHasWholeSequences) {
  EXPECT_EQ(sequences_of_step({.gpus = 8}, kFour), 8) << "one for each GPU";
  EXPECT_EQ(sequences_of_step({.gpus = 8, .tokens_per_step = 12 * 4096}, kFour), 12);
  EXPECT_THAT([] { sequences_of_step({.gpus = 8, .tokens_per_step = 10000}, kFour); },
              ThrowsMessage<InputError>(HasSubstr("10000: a step has whole sequences, and one has "
                                                  "4096 tokens; the nearest is 8192")));
  EXPECT_THAT([] { sequences_of_step({.gpus = 8, .tokens_per_step = 1}, kFour); },
              ThrowsMessage<InputError>(HasSubstr("the nearest is 4096")));
  const std::int64_t lengths[] = {1000, 3000};
  EXPECT_EQ(sequences_of_step({.gpus = 8, .tokens_per_step = 7000}, lengths), 4);
  EXPECT_THAT([&] { sequences_of_step({.gpus = 8, .tokens_per_step = 900}, lengths); },
              ThrowsMessage<InputError>(HasSubstr("the nearest is 2000")));
}

TEST(Degrees, AStepTakesWhatTheReplicaWithMostSequencesTakes) {
  const Expected one[] = {{2, 1, 3}};
  const Expected step = step_time(one, 5, 4);
  EXPECT_EQ(step.value, 4) << "one of the four has two sequences";
  EXPECT_EQ(step.low, 2);
  EXPECT_EQ(step.high, 6);
  EXPECT_EQ(step_time(one, 3, 8).value, 2) << "five idle";
}

TEST(Degrees, OfSequencesThatDifferTheSlowestReplicaIsWaitedFor) {
  const Expected two[] = {{1, 1, 1}, {3, 3, 3}};
  EXPECT_NEAR(step_time(two, 64, 1).value, 128, 8) << "the sum of 64 draws with mean 2";
  // The slowest of 8 takes 3 unless all drew 1: 3 - 2 / 2^8.
  EXPECT_NEAR(step_time(two, 8, 8).value, 3 - 2.0 / 256, 0.07);
  EXPECT_GT(step_time(two, 64, 8).value, 17) << "more than the mean of 16";
  EXPECT_EQ(step_time(two, 64, 8).value, step_time(two, 64, 8).value);
}

TEST(Degrees, TensorsThatDoNotFitAreNamedWithTheirSize) {
  Case c = testing::case_of("slice", "causal", 1 << 20, Pass::step);
  // A token has (64 + 8) · 2 · 128 elements of 2 bytes and 64 LSE of 4; twice that with gradients.
  const double bytes = 2.0 * (1 << 20) * (72 * 2 * 128 * 2 + 64 * 4);
  EXPECT_EQ(why_too_large(c, 1, bytes), "");
  EXPECT_THAT(why_too_large(c, 1, bytes - 1), HasSubstr("and their gradients take 72.5 GiB"));
  EXPECT_EQ(why_too_large(c, 2, bytes / 2), "");
  c.pass = Pass::forward;
  EXPECT_EQ(why_too_large(c, 1, bytes / 2), "");
}

TEST(Degrees, AllLayersKeepWhatTheirBackwardPassesNeed) {
  WeighedDegrees weighed{.problem = testing::case_of("", "causal", 4096, Pass::step),
                         .training = {.layers = 32},
                         .longest = 8192};
  const double one = 8192.0 * (72 * 2 * 128 * 2 + 64 * 4);
  EXPECT_EQ(kept_bytes(weighed, 1), 32 * one);
  EXPECT_EQ(kept_bytes(weighed, 4), 8 * one);
  weighed.problem.pass = Pass::forward;
  EXPECT_EQ(kept_bytes(weighed, 1), one);
}

TEST(Degrees, AChoiceIsOneForEverySequenceWithAllLayersAndSequencesOfAReplica) {
  const Advice answers[] = {answer_with({choice_taking("slice", 1), choice_taking("flex", 2)}),
                            answer_with({choice_taking("slice", 1)})};
  const Advice step = step_advice(answers, {.gpus = 8, .layers = 10}, 16, 2);
  ASSERT_EQ(step.choices.size(), 1U) << "flex is none for the second";
  EXPECT_DOUBLE_EQ(step.choices[0].time_ms.value, 40) << "10 layers of 4 sequences";
}

TEST(Degrees, ChoicesOfAllDegreesAreRankedTogether) {
  WeighedDegrees weighed{.problem = testing::case_of("", "causal", 4096, Pass::step)};
  Choice over_two = choice_taking("slice", 3);
  over_two.c.scheme = "magi";
  over_two.c.ranks = 2;
  Choice close = over_two;
  close.c.scheme = "ulysses";
  close.time_ms = {3.5, 2.9, 4};
  weighed.by_degree = {{1, answer_with({choice_taking("flex", 5)})},
                       {2, answer_with({over_two, close})}};
  rank_degrees(weighed);
  ASSERT_EQ(weighed.choices.size(), 3U);
  EXPECT_EQ(weighed.choices[0].c.scheme, "magi");
  EXPECT_TRUE(weighed.choices[1].tied);
  EXPECT_EQ(best_of(weighed, 1)->c.kernel, "flex");
  EXPECT_EQ(best_of(weighed, 2), &weighed.choices[0]);
  EXPECT_EQ(best_of(weighed, 4), nullptr);
}

TEST(Degrees, WhatDoesNotFitAGpuComesBehindWhatDoes) {
  WeighedDegrees weighed{.problem = testing::case_of("", "causal", 4096, Pass::step),
                         .longest = 4096};
  Choice over_two = choice_taking("slice", 3);
  over_two.c.ranks = 2;
  weighed.by_degree = {{1, answer_with({choice_taking("flex", 2), choice_taking("slice", 1)})},
                       {2, answer_with({over_two})}};
  weighed.memory_bytes = kept_bytes(weighed, 2);
  EXPECT_TRUE(fits(weighed, 2));
  EXPECT_FALSE(fits(weighed, 1));
  rank_degrees(weighed);
  ASSERT_EQ(weighed.choices.size(), 3U);
  EXPECT_EQ(degree_of(weighed.choices[0]), 2);
  EXPECT_EQ(weighed.choices[1].time_ms.value, 1);
  EXPECT_FALSE(weighed.choices[1].tied) << "faster, but it does not fit";
  EXPECT_FALSE(weighed.choices[2].tied);
  weighed.memory_bytes = kept_bytes(weighed, 2) - 1;
  rank_degrees(weighed);
  EXPECT_EQ(weighed.choices[0].time_ms.value, 1) << "where none fits, the fastest";
  weighed.memory_bytes.reset();
  EXPECT_TRUE(fits(weighed, 1)) << "not known";
}

}  // namespace
}  // namespace longca::advise
