#include "advise/rank_advisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/suite/axes.h"
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
