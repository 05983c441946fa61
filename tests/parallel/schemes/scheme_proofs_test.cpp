// Every scheme's plans, run on symbols: each allowed cell once, each byte received and needed,
// every wait named.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "parallel/plan/proof.h"
#include "parallel/schemes/random_problem.h"

namespace longca::testing {
namespace {

class SchemePlans : public ::testing::TestWithParam<std::string> {};

TEST_P(SchemePlans, AreRightForRandomProblems) {
  const Scheme& scheme = find_scheme(GetParam());
  rc::check([&] {
    const ParallelProblem problem = random_problem(50);
    RC_PRE(scheme.supports(problem).ok());
    RC_CLASSIFY(problem.ranks > problem.mask.q_tokens(), "fewer tokens than ranks");
    RC_CLASSIFY(problem.mask.blocks() != nullptr, "blocks per head");
    const Proof proof = prove(problem, scheme);
    if (!proof.ok()) RC_FAIL(proof.text());
  });
}

/// Over each sharding, with more members and windows than random problems often have.
TEST_P(SchemePlans, AreRightOnEachShardingOfCausalDocuments) {
  const Scheme& scheme = find_scheme(GetParam());
  const std::vector<std::int64_t> lengths = {13, 0, 1, 30, 4};
  std::vector<MaskSlice> slices;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    slices.push_back({begin, begin + length, begin, begin + length, MaskSliceType::causal});
    begin += length;
  }
  for (const ShardKind shard : kShardKinds) {
    for (const int ranks : {1, 2, 4, 8, 16}) {
      for (const int min_gap : {0, 2}) {
        ParallelProblem problem =
            problem_of(Mask::from_slices(begin, begin, slices), lengths, 16, 4, ranks);
        problem.shard = shard;
        problem.ranks_per_node = 4;
        problem.min_gap = min_gap;
        const Proof proof = prove(problem, scheme);
        EXPECT_TRUE(proof.ok()) << to_string(shard) << ", " << ranks << " ranks, gaps of "
                                << min_gap << "\n"
                                << proof.text();
      }
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& scheme : schemes()) names.push_back(scheme->name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SchemePlans, ::testing::ValuesIn(names()),
                         [](const auto& scheme) { return scheme.param; });

}  // namespace
}  // namespace longca::testing
