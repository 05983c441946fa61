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
}

}  // namespace
}  // namespace longca::advise
