// Every scheme's plans, run on symbols: each allowed cell once, each byte received and needed,
// every wait named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

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

/// Rows without keys, and rows that two calls share, some of which only the second one sees.
ParallelProblem problem_with_sinks(int ranks) {
  std::vector<MaskSlice> slices = {{4, 40, 0, 20, MaskSliceType::full},
                                   {30, 60, 30, 60, MaskSliceType::causal}};
  ParallelProblem problem =
      problem_of(Mask::from_slices(64, 64, std::move(slices)), {64}, 8, 2, ranks);
  problem.problem.sink = true;
  problem.min_gap = 1;
  return problem;
}

struct SinkFault {
  const char* name;
  void (*plant)(std::vector<RankPlan>& plans);
  const char* said;
};

/// Calls change(op, ops) for each op of a kind, of the first rank that has one.
template <typename Kind, typename Change>
void change_first(std::vector<RankPlan>& plans, bool backward, Change&& change) {
  for (RankPlan& plan : plans) {
    std::vector<Op>& ops = backward ? plan.backward : plan.forward;
    const auto found = std::ranges::find_if(
        ops, [](const Op& op) { return std::holds_alternative<Kind>(op.what); });
    if (found != ops.end()) return change(std::get<Kind>(found->what), ops, found - ops.begin());
  }
  FAIL() << "no op to change";
}

void empty(std::initializer_list<Region*> regions) {
  for (Region* region : regions) region->tokens.end = region->tokens.begin;
}

class PlantedSinkFault : public ::testing::TestWithParam<SinkFault> {};

TEST_P(PlantedSinkFault, IsNamed) {
  const ParallelProblem problem = problem_with_sinks(4);
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < 4; ++rank) plans.push_back(find_scheme("usp").plan(problem, rank));
  ASSERT_EQ(prove(problem, plans).text(), "");
  GetParam().plant(plans);
  EXPECT_THAT(prove(problem, plans).text(), ::testing::HasSubstr(GetParam().said));
}

const SinkFault kSinkFaults[] = {
    {"LeftOut",
     [](auto& plans) {
       change_first<JoinSinks>(plans, false, [](JoinSinks& join, auto&, auto) {
         empty({&join.o, &join.lse});
       });
     },
     "lacks what comes from the sink"},
    {"TakenTwice",
     [](auto& plans) {
       change_first<JoinSinks>(plans, false, [](const JoinSinks& join, auto& ops, auto at) {
         ops.insert(ops.begin() + at, Op{join, {}});
       });
     },
     "joins a sink to"},
    {"OfAnotherHead",
     [](auto& plans) {
       change_first<Attend>(plans, false, [](Attend& a, auto&, auto) { ++a.first_head; });
     },
     "takes the sink of head"},
    {"GradientLeftOut",
     [](auto& plans) {
       change_first<SinkGradients>(plans, true, [](SinkGradients& g, auto&, auto) {
         empty({&g.dout, &g.o, &g.lse});
       });
     },
     "counts 0 times in dsink"},
    {"GradientTwice",
     [](auto& plans) {
       change_first<SinkGradients>(plans, true, [](SinkGradients g, auto& ops, auto) {
         g.first = false;
         ops.push_back(Op{g, {}});
       });
     },
     "counts 2 times in dsink"},
    {"GradientNotCleared",
     [](auto& plans) {
       change_first<SinkGradients>(plans, true,
                                   [](SinkGradients& g, auto&, auto) { g.first = false; });
     },
     "a dsink that nobody cleared"},
    {"GradientOfAnotherHead",
     [](auto& plans) {
       change_first<SinkGradients>(plans, true,
                                   [](SinkGradients& g, auto&, auto) { ++g.first_head; });
     },
     "for head"},
};

INSTANTIATE_TEST_SUITE_P(Proof, PlantedSinkFault, ::testing::ValuesIn(kSinkFaults),
                         [](const auto& fault) { return fault.param.name; });

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& scheme : schemes()) names.push_back(scheme->name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SchemePlans, ::testing::ValuesIn(names()),
                         [](const auto& scheme) { return scheme.param; });

}  // namespace
}  // namespace longca::testing
