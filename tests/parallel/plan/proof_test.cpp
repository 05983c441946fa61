#include "parallel/plan/proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>

#include "mask/generators.h"
#include "parallel/plan/sample_plans.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

ParallelProblem random_problem() {
  ParallelProblem problem = sample_problem(*rc::gen::inRange(1, 8));
  const auto masks = mask_table();
  MaskSpec spec;
  spec.name = masks[*rc::gen::inRange<std::size_t>(0, masks.size())].name;
  spec.tokens = *rc::gen::inRange<std::int64_t>(1, 48);
  spec.seed = static_cast<std::uint64_t>(*rc::gen::inRange(0, 1000));
  spec.window = 5;
  spec.block_tokens = 4;
  spec.block = 7;
  spec.heads_q = problem.problem.heads_q = 4;
  spec.heads_k = problem.problem.heads_k = *rc::gen::elementOf(std::vector{1, 2, 4});
  const GeneratedMask generated = generate_mask(spec);
  problem.problem.tokens_q = problem.problem.tokens_k = spec.tokens;
  problem.mask = generated.mask;
  problem.lengths = generated.lengths;
  problem.shard = static_cast<ShardKind>(*rc::gen::inRange(0, 4));
  return problem;
}

RC_GTEST_PROP(Proof, FindsNothingInPlansThatAreRight, ()) {
  const ParallelProblem problem = random_problem();
  const auto plans = sample_plans(problem);
  const Proof proof = prove(problem, plans);
  if (!proof.ok()) RC_FAIL(proof.text());
  std::int64_t sent = 0;
  for (const RankPlan& plan : plans) {
    const Problem& p = problem.problem;
    sent += sum_plan(plan, plan.forward, p.head_dim, p.dtype).bytes_sent;
    sent += sum_plan(plan, plan.backward, p.head_dim, p.dtype).bytes_sent;
  }
  RC_ASSERT(proof.forward.sent + proof.backward.sent == sent);
}

/// The first op of the kind, from `from` on.
template <typename Kind>
int find_op(const std::vector<Op>& ops, int from = 0) {
  for (int i = from; i < std::ssize(ops); ++i) {
    if (std::holds_alternative<Kind>(ops[static_cast<std::size_t>(i)].what)) return i;
  }
  ADD_FAILURE() << "no such op";
  return -1;
}

template <typename Kind>
Kind& get_op(std::vector<Op>& ops, int from = 0) {
  return std::get<Kind>(ops[static_cast<std::size_t>(find_op<Kind>(ops, from))].what);
}

/// The n-th Attend.
Attend& attend(RankPlan& plan, int n) {
  int at = find_op<Attend>(plan.forward);
  for (; n > 0; --n) at = find_op<Attend>(plan.forward, at + 1);
  return std::get<Attend>(plan.forward[static_cast<std::size_t>(at)].what);
}

/// A fault put into right plans of three ranks, and what the proof must say of it.
struct Planted {
  const char* name;
  std::function<void(std::vector<RankPlan>&)> plant;
  const char* sentence;
};

class PlantedFault : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedFault, IsNamed) {
  const ParallelProblem problem = sample_problem(3);
  auto plans = sample_plans(problem);
  ASSERT_EQ(prove(problem, plans).text(), "");
  GetParam().plant(plans);
  const Proof proof = prove(problem, plans);
  EXPECT_FALSE(proof.ok());
  EXPECT_THAT(proof.text(), HasSubstr(GetParam().sentence));
}

void leave_out(Op& op) {
  op.what = Exchange{};
  op.lane = Lane::communication;
}

const Planted kPlanted[] = {
    {"AttendLeftOut",
     [](auto& plans) {
       leave_out(plans[1].forward[static_cast<std::size_t>(find_op<Attend>(plans[1].forward, 2))]);
     },
     "allowed cells are never computed"},
    {"GradientLeftOut",
     [](auto& plans) {
       auto& ops = plans[1].backward;
       leave_out(ops[static_cast<std::size_t>(find_op<AttendBackward>(ops))]);
     },
     "backward: "},
    {"ChunksSwapped",
     [](auto& plans) { std::swap(attend(plans[1], 1).mask, attend(plans[1], 2).mask); },
     "which the mask does not allow"},
    {"ValuesSentAsKeys",
     [](auto& plans) {
       auto& sends = get_op<Exchange>(plans[1].forward).sends;
       std::swap(sends[0].region, sends[1].region);
     },
     "which holds v of token"},
    {"KeysWithOtherValues",
     [](auto& plans) { std::swap(attend(plans[0], 1).v, attend(plans[0], 2).v); },
     "takes v of token"},
    {"ComputedTwice",
     [](auto& plans) {
       Op again = plans[0].forward[static_cast<std::size_t>(find_op<Attend>(plans[0].forward))];
       std::get<Attend>(again.what).first = false;
       plans[0].forward.push_back(again);
     },
     "a second time"},
    {"NothingToWaitFor",
     [](auto& plans) {
       for (Op& op : plans[1].forward) {
         if (std::holds_alternative<Attend>(op.what)) op.after.clear();
       }
     },
     "rank 1, forward op 3 (attend, step 1): races with op 0 (exchange, send_receive)"},
    {"BufferOverwrittenTooEarly",
     [](auto& plans) {
       Exchange& second = get_op<Exchange>(plans[1].forward, 1);
       second.receives[0].region.buffer = second.sends[0].region.buffer;
     },
     "twice at once"},
    {"SentAgain",
     [](auto& plans) {
       for (RankPlan& plan : plans) {
         Op again = plan.forward[static_cast<std::size_t>(find_op<Exchange>(plan.forward))];
         again.after = {static_cast<int>(plan.forward.size()) - 1};
         plan.forward.push_back(again);
       }
     },
     "receives k of token"},
    {"WrongHead",
     [](auto& plans) {
       Attend& a = attend(plans[0], 0);
       for (Region* r : {&a.q, &a.o, &a.lse}) r->heads = {0, 2};
       for (Region* r : {&a.k, &a.v}) r->heads = {1, 2};
     },
     "query head 0 reads KV head 1"},
    {"MergeLost", [](auto& plans) { attend(plans[0], 2).first = true; },
     "and lacks what comes from key"},
    {"UnfinishedSoftmax", [](auto& plans) { attend(plans[0], 2).first = true; },
     "of an unfinished softmax: it lacks key"},
    {"LseNotMerged",
     [](auto& plans) {
       attend(plans[0], 1).lse.tokens = {0, 0};
     },
     "differ in shape"},
    {"MessageMissing", [](auto& plans) { get_op<Exchange>(plans[0].forward).sends.pop_back(); },
     "rank 0 sends 3 messages to rank 1, which receives 4"},
    {"MessageShapes",
     [](auto& plans) { --get_op<Exchange>(plans[0].backward).sends[0].region.tokens.end; },
     "the ends of a message differ in shape"},
    {"MessageTypes",
     [](auto& plans) {
       Exchange& scatter = get_op<Exchange>(plans[0].backward, 1);
       scatter.sends[0].region = plans[0].whole(static_cast<int>(TensorRole::k));
     },
     "the ends of a message differ in element type"},
    {"Standstill",
     [](auto& plans) {
       for (RankPlan& plan : plans) {  // each receives before it sends
         Op sends = plan.forward[0];
         std::get<Exchange>(plan.forward[0].what).sends.clear();
         std::get<Exchange>(sends.what).receives.clear();
         sends.after = {0};
         plan.forward.push_back(sends);
       }
     },
     "the ranks come to a standstill: rank 0, forward op 0 (exchange, send_receive, step 0) waits"},
    {"PlacedElsewhere",
     [](auto& plans) { plans[1].results[1].tokens = plans[2].results[1].tokens; },
     "rank 1: lse of token"},
    {"PlacedNowhere", [](auto& plans) { plans[1].results.pop_back(); }, "in 0 places"},
    {"SumLeftOut",
     [](auto& plans) {
       auto& ops = plans[0].backward;
       leave_out(ops[static_cast<std::size_t>(find_op<Add>(ops))]);
     },
     "and lacks what comes from query"},
    {"SummedTwice",
     [](auto& plans) {
       auto& ops = plans[0].backward;
       const int at = find_op<Add>(ops);
       ops[static_cast<std::size_t>(at) + 2] = ops[static_cast<std::size_t>(at)];
     },
     "adds the same cells to dk of token"},
    {"CastThatNothingNeeds",
     [](auto& plans) {
       for (RankPlan& plan : plans) {
         for (Op& op : plan.forward) {
           if (auto* e = std::get_if<Exchange>(&op.what)) e->pattern = Pattern::group_cast;
         }
       }
     },
     "which nothing needs"},
    {"NeverWritten", [](auto& plans) { leave_out(plans[0].backward[1]); },
     "adds to nothing in rows"},
    {"InputOverwritten",
     [](auto& plans) {
       plans[0].forward.push_back({Clear{plans[0].whole(0)}, {}});
     },
     "an input of the caller"},
    {"WaitsForLater", [](auto& plans) { plans[0].forward[1].after = {2}; },
     "waits for op 2, which is not before it"},
    {"OutsideTheBuffer", [](auto& plans) { attend(plans[0], 0).q.tokens.end += 1; },
     "is outside the buffer"},
    {"NoFloat32ToMergeInto",
     [](auto& plans) { attend(plans[0], 1).o.buffer = static_cast<int>(TensorRole::o); },
     "which is not float32"},
    {"MaskOfOtherShape", [](auto& plans) { plans[0].masks[0] = Mask::from_slices(1, 1, {}); },
     "a mask of 1 × 1 for"},
    {"MessageToItself", [](auto& plans) { get_op<Exchange>(plans[0].forward).sends[0].peer = 0; },
     "a message with rank 0"},
    {"ExchangeOnTheComputeLane", [](auto& plans) { plans[0].forward[0].lane = Lane::compute; },
     "on the compute lane"},
};

INSTANTIATE_TEST_SUITE_P(Proof, PlantedFault, ::testing::ValuesIn(kPlanted),
                         [](const auto& planted) { return planted.param.name; });

TEST(Proof, CountsWhatTravelsForNothing) {
  const ParallelProblem problem = sample_problem(3);
  const Proof proof = prove(problem, sample_plans(problem));
  // A causal zigzag ring carries keys past queries that do not see them.
  EXPECT_GT(proof.forward.unneeded, 0);
  EXPECT_LT(proof.forward.unneeded, proof.forward.sent);
  EXPECT_EQ(proof.forward.padding, 0);
}

TEST(Proof, CountsPadding) {
  ParallelProblem problem = sample_problem(4);
  problem.shard = ShardKind::document_zigzag;
  problem.lengths = {9, 15};  // padded to 16 each
  const Proof proof = prove(problem, sample_plans(problem));
  EXPECT_EQ(proof.text(), "");
  // 8 of 32 rows, each sent to 3 ranks: k and v of 2 heads × 8 floats.
  EXPECT_EQ(proof.forward.padding, 8 * 3 * 2 * (2 * 8 * 4));
}

TEST(Proof, PaddingIsNeverAttended) {
  ParallelProblem problem = sample_problem(2);
  problem.shard = ShardKind::document_zigzag;
  problem.lengths = {9, 15};
  auto plans = sample_plans(problem);
  Attend& own = attend(plans[0], 0);
  for (Region* keys : {&own.k, &own.v}) {
    ++keys->tokens.begin;
    ++keys->tokens.end;
  }
  EXPECT_THAT(prove(problem, plans).text(), HasSubstr("which holds padding"));
}

}  // namespace
}  // namespace longca::testing
