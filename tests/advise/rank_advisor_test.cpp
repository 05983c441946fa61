#include "advise/rank_advisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/suite/axes.h"
#include "bench/suite/cases.h"
#include "bench/suite/suite.h"
#include "planted.h"

namespace longca::advise {
namespace {

Case over_two(const std::string& scheme, Pass pass) {
  Case c = testing::case_of("slice", "causal", 8192, pass);
  c.scheme = scheme;
  c.ranks = 2;
  return canonical(c);
}

std::vector<Record> ranked_records() {
  return {testing::record_of(over_two("magi", Pass::forward), 1),
          testing::record_of(over_two("magi", Pass::backward), 3),
          testing::record_of(over_two("ulysses", Pass::forward), 0.8),
          testing::record_of(over_two("ulysses", Pass::backward), 4),
          testing::record_of(over_two("ring_p2p", Pass::forward), 0.1)};
}

TEST(AdviseOverRanks, RanksMeasuredSchemesByTheStep) {
  const Evidence evidence = testing::evidence_of(ranked_records());
  const Advice advice = advise_over_ranks(evidence, over_two("usp", Pass::step), {}, {});
  ASSERT_EQ(advice.choices.size(), 2U) << "ring_p2p has no backward record";
  EXPECT_EQ(advice.choices[0].c.scheme, "magi");
  EXPECT_EQ(advice.choices[0].time_ms.value, 4);
  const Advice forward = advise_over_ranks(evidence, over_two("usp", Pass::forward), {}, {});
  EXPECT_EQ(forward.choices[0].c.scheme, "ring_p2p");
  const std::vector<Case> allowed{over_two("ulysses", Pass::forward)};
  EXPECT_EQ(advise_over_ranks(evidence, over_two("usp", Pass::step), allowed, {}).choices.size(),
            1U);
}

TEST(AdviseOverRanks, WhereNothingWasMeasuredItSaysWhatToRun) {
  Case four = over_two("magi", Pass::step);
  four.ranks = 4;
  const Advice advice =
      advise_over_ranks(testing::evidence_of(ranked_records()), canonical(four), {}, {});
  EXPECT_TRUE(advice.choices.empty());
  EXPECT_FALSE(advice.unknown.empty());
  EXPECT_THAT(advice.find_out, ::testing::HasSubstr("longca cp"));
  EXPECT_THAT(advice.find_out, ::testing::HasSubstr("ranks=4"));
  EXPECT_THAT(advice.find_out, ::testing::Not(::testing::HasSubstr("mode=")))
      << "as cp.toml has it";
  four.mode = "sustained";
  EXPECT_THAT(
      advise_over_ranks(testing::evidence_of(ranked_records()), canonical(four), {}, {}).find_out,
      ::testing::HasSubstr(" -a mode=sustained"));
}

/// A variant that failed says nothing of another one of its scheme.
TEST(AdviseOverRanks, OnlyWhatEachAskedVariantHasARecordOfIsKnown) {
  const auto variant = [](const std::string& shard) {
    Case c = over_two("usp", Pass::forward);
    c.shard = shard;
    return c;
  };
  Record failed = testing::record_of(variant("zigzag"), 1);
  failed.status = {StatusCode::oom, "in plan: too much"};
  failed.metrics.clear();
  const Evidence evidence = testing::evidence_of({failed});
  const std::vector<Case> one{variant("zigzag")};
  const std::vector<Case> both{variant("zigzag"), variant("balanced")};

  const Advice known = advise_over_ranks(evidence, one[0], one, {});
  EXPECT_EQ(known.excluded.size(), 1U);
  EXPECT_TRUE(known.unknown.empty());
  EXPECT_EQ(known.find_out, "");
  const Advice open = advise_over_ranks(evidence, one[0], both, {});
  EXPECT_EQ(open.excluded.size(), 1U);
  ASSERT_EQ(open.unknown.size(), 1U);
  EXPECT_EQ(open.unknown[0].kernel, "what is not named above");
  EXPECT_THAT(open.find_out, ::testing::HasSubstr("longca cp"));
}

/// The cells of `problem` that `axes` ask for, as `advise` makes them.
std::vector<Case> asked_cells(const std::vector<std::string>& axes) {
  Suite suite;
  suite.name = "asked";
  for (const std::string& axis : axes) parse_axis_argument(axis, suite.axes);
  return expand_over_ranks(suite, {}).cases;
}

std::set<std::string> keys_of(const std::vector<Case>& cells) {
  std::set<std::string> keys;
  for (const Case& c : cells) keys.insert(c.key());
  return keys;
}

/// The cells that the command runs: its axes over those of the suite `cp`.
std::set<std::string> cells_of_command(const std::string& command) {
  Suite suite = load_suite("cp");
  AxisValues given;
  std::istringstream words(command);
  std::string word;
  words >> word >> word;  // longca cp
  while (words >> word) {
    EXPECT_EQ(word, "-a") << command;
    words >> word;
    parse_axis_argument(word, given);
  }
  override_axes(suite, given);
  return keys_of(expand_over_ranks(suite, {}).cases);
}

TEST(AdviseOverRanks, TheCommandRunsTheCellsThatWereAskedFor) {
  const std::vector<std::vector<std::string>> asked{
      {"scheme=usp,loongtrain", "factor=4", "shard=balanced"},
      {"scheme=usp"},
      {"scheme=usp,ulysses,magi", "shard=best", "transport=nccl"},
      {"scheme=magi,ring_p2p", "shard=published", "transport=nccl,peer"},
      {"shard=best", "factor=2,4"},
      {"scheme=all", "shard=zigzag,best"},
      {"scheme=ring_p2p", "deterministic=1"},
      {"scheme=ring_p2p", "mode=sustained", "pass=forward"},
      {"kernel=cudnn,slice", "scheme=loongtrain", "factor=2"}};
  for (std::vector<std::string> axes : asked) {
    AdviceOptions options;
    for (const char* axis : {"kernel=slice", "pass=step", "ranks=8"}) {
      const auto same = [&](const std::string& given) {
        return given.starts_with(std::string(axis).substr(0, std::string(axis).find('=') + 1));
      };
      if (std::ranges::none_of(axes, same)) axes.emplace_back(axis);
    }
    for (const char* axis : {"mask=causal", "tokens=64K", "device=cuda"}) axes.emplace_back(axis);
    if (axes.front().starts_with("kernel=")) options.kernels = {"cudnn", "slice"};
    const std::vector<Case> cells = asked_cells(axes);
    const std::string command = command_over_ranks(cells.front(), cells, options);
    EXPECT_EQ(cells_of_command(command), keys_of(cells)) << command;
  }
}

TEST(AdviseOverRanks, TheCommandNamesHowSchemesRun) {
  const std::vector<Case> cells = asked_cells(
      {"kernel=slice", "mask=causal", "tokens=64K", "ranks=16", "device=cuda",
       "scheme=usp,loongtrain", "factor=4", "shard=balanced", "pass=step", "deterministic=1"});
  const std::string command = command_over_ranks(cells.front(), cells, {});
  EXPECT_THAT(command, ::testing::EndsWith(
                           " -a pass=step -a deterministic=1 -a kernel=slice -a "
                           "scheme=loongtrain,usp -a shard=balanced -a factor=4 -a transport=nccl"))
      << "peer reaches no other node";
  EXPECT_THAT(command_over_ranks(cells.front(), {}, {}),
              ::testing::EndsWith(" -a kernel=slice -a transport=nccl"));
}

TEST(AdviseOverRanks, MoreRanksThanAnyPlatformHasAreNamed) {
  Case c = over_two("usp", Pass::forward);
  c.ranks = 2000;
  const auto reason = [&] {
    const Advice advice =
        advise_over_ranks(testing::evidence_of(ranked_records()), canonical(c), {}, {});
    return advice.unknown.at(0).reason;
  };
  EXPECT_EQ(reason(),
            "no record over so many ranks of this problem, and no known platform of NVIDIA H200 "
            "has more than 1024 GPUs to simulate 2000 ranks on");
  c.ranks = 1024;
  EXPECT_EQ(reason(), "no record over so many ranks of this problem");
}

TEST(AdviseOverRanks, MemoryThatNoRecordHasIsNotKnown) {
  const std::vector<Case> asked{over_two("magi", Pass::forward)};
  Record record = testing::record_of(asked[0], 1);
  record.metrics.erase("peak_bytes");
  const Evidence evidence = testing::evidence_of({record});
  const Advice advice =
      advise_over_ranks(evidence, asked[0], asked, {.objective = Objective::memory});
  EXPECT_TRUE(advice.choices.empty());
  EXPECT_EQ(advice.unknown.size(), 1U);
}

}  // namespace
}  // namespace longca::advise
