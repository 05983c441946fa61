#include "advise/open_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "planted.h"

namespace longca::advise {
namespace {

using ::testing::ElementsAre;

Choice guess(const std::string& kernel, Expected time_ms, Basis basis = Basis::interpolated) {
  return {.c = testing::case_of(kernel, "causal", 4096, Pass::step),
          .time_ms = time_ms,
          .basis = basis};
}

Advice ranked(std::vector<Choice> choices, std::vector<Refusal> unknown = {}) {
  rank_choices(choices, Objective::time);
  return {.problem = testing::case_of("", "causal", 4096, Pass::step),
          .choices = std::move(choices),
          .unknown = std::move(unknown)};
}

std::vector<std::string> kernels_of(const std::vector<OpenCell>& cells) {
  std::vector<std::string> kernels;
  for (const OpenCell& cell : cells) kernels.push_back(cell.c.kernel);
  return kernels;
}

TEST(OpenCells, ThatMayComeFurthestBelowTheFirstComeFirst) {
  const Advice advice = ranked({guess("slice", {10, 9, 11}), guess("fa4", {12, 10.5, 14}),
                                guess("cudnn", {13, 8, 20}), guess("flex", {20, 15, 30})},
                               {{"fa3", "no record"}});
  const auto cells = open_cells({&advice, 1}, Objective::time);
  EXPECT_THAT(kernels_of(cells), ElementsAre("fa3", "slice", "cudnn", "fa4"))
      << "flex cannot be faster";
  EXPECT_TRUE(std::isinf(cells[0].matters));
  EXPECT_EQ(cells[0].expected_ms, 20) << "the slowest known";
  EXPECT_DOUBLE_EQ(cells[1].matters, 0.3) << "cudnn may come 3 ms below the 11";
  EXPECT_DOUBLE_EQ(cells[2].matters, 0.3);
  EXPECT_DOUBLE_EQ(cells[3].matters, 0.05);
}

TEST(OpenCells, WhatWasMeasuredIsNotOpen) {
  const Advice advice =
      ranked({guess("slice", {10, 9.9, 10.1}, Basis::measured), guess("fa4", {11, 10, 12}),
              guess("cudnn", {10.05, 10, 10.2}, Basis::measured)});
  EXPECT_THAT(kernels_of(open_cells({&advice, 1}, Objective::time)), ElementsAre("fa4"));
  const Advice sure = ranked({guess("slice", {10, 9, 11}), guess("flex", {20, 15, 30})});
  const auto cells = open_cells({&sure, 1}, Objective::time);
  EXPECT_THAT(kernels_of(cells), ElementsAre("slice")) << "how fast it is remains open";
  EXPECT_EQ(cells[0].matters, 0);
}

TEST(OpenCells, OfSeveralProblemsTheLeastCertainChoiceComesFirst) {
  const Advice advice[] = {ranked({guess("slice", {10, 9, 11}), guess("fa4", {11, 10, 12})}),
                           ranked({guess("cudnn", {10, 6, 14}), guess("flex", {11, 7, 15})})};
  EXPECT_THAT(kernels_of(open_cells(advice, Objective::time)),
              ElementsAre("cudnn", "flex", "slice", "fa4"));
}

TEST(OpenCells, ByMemoryIntervalsOfMemoryCount) {
  Choice slice = guess("slice", {10, 9, 11});
  Choice flex = guess("flex", {20, 19, 21});
  slice.peak_bytes = {100, 90, 110};
  flex.peak_bytes = {120, 100, 140};
  const Advice advice = ranked({slice, flex});
  EXPECT_THAT(kernels_of(open_cells({&advice, 1}, Objective::memory)),
              ElementsAre("slice", "flex"));
}

TEST(ChangedChoices, SayWhatMeasuringTurnedTheFirstFromAndTo) {
  const Advice nothing = ranked({});
  const Advice slice = ranked({guess("slice", {10, 9, 11})});
  const Advice measured = ranked({guess("slice", {10.5, 10.4, 10.6}, Basis::measured)});
  const Advice other = ranked({guess("fa4", {9, 8.9, 9.1}, Basis::measured)});
  const auto said = [](const Advice& before, const Advice& after) {
    return describe(changed_choices({&before, 1}, {&after, 1}).front());
  };
  EXPECT_EQ(said(slice, measured), "slice stays first: 10.5 ms, expected 9.00 to 11.0");
  EXPECT_EQ(said(slice, other),
            "fa4 is first instead of slice: 9.00 ms, and 10.0 was expected of slice");
  EXPECT_EQ(said(nothing, measured), "slice is first: 10.5 ms; nothing was known");
  EXPECT_EQ(said(slice, slice), "slice is first: 10.0 ms, not measured");
  EXPECT_EQ(said(nothing, nothing), "still nothing is known");
}

}  // namespace
}  // namespace longca::advise
