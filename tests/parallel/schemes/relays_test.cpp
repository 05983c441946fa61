// Keys that cross between nodes: each once into every node that sees it, in plans of every mask.
#include "parallel/schemes/build/relays.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "parallel/plan/explain.h"
#include "parallel/schemes/build/formulas.h"
#include "parallel/schemes/build/node_order.h"
#include "parallel/schemes/random_problem.h"

namespace longca::testing {
namespace {

using Lists = std::vector<std::vector<Range>>;

TEST(ShareKeys, GivesARunToThoseThatHaveItInTurn) {
  const Lists has = {{{0, 100}}, {{0, 100}}, {{60, 100}}};
  const std::vector<Range> keys = {{0, 96}};
  const std::vector<KeyShare> shares = share_keys(has, keys);
  // First [0, 60), which two have, then [60, 96), which three have, in multiples of 16.
  EXPECT_EQ(shares[0].shared, (std::vector<Range>{{0, 32}}));
  EXPECT_EQ(shares[1].shared, (std::vector<Range>{{32, 76}}));
  EXPECT_EQ(shares[2].shared, (std::vector<Range>{{76, 96}}));
  for (const KeyShare& share : shares) EXPECT_TRUE(share.alone.empty());
}

TEST(ShareKeys, LeavesAloneWhatOneHas) {
  const Lists has = {{{0, 50}}, {{40, 60}, {80, 90}}};
  const std::vector<Range> keys = {{0, 45}, {80, 85}};
  const std::vector<KeyShare> shares = share_keys(has, keys);
  EXPECT_EQ(shares[0].alone, (std::vector<Range>{{0, 40}}));
  EXPECT_EQ(shares[1].alone, (std::vector<Range>{{80, 85}}));
  EXPECT_TRUE(shares[0].shared.empty()) << "it has more already";
  EXPECT_EQ(shares[1].shared, (std::vector<Range>{{40, 45}}));
}

RC_GTEST_PROP(ShareKeys, GivesEachKeyThatSomebodyHasToOneThatHasIt, ()) {
  const auto random_ranges = [](std::int64_t tokens) {
    std::vector<Range> ranges;
    for (int i = uniform(0, 4); i > 0; --i) {
      const auto begin = uniform<std::int64_t>(0, tokens);
      ranges.push_back({begin, uniform<std::int64_t>(begin, tokens + 1)});
    }
    join_ranges(ranges);
    return ranges;
  };
  Lists has;
  for (int i = uniform(1, 6); i > 0; --i) has.push_back(random_ranges(200));
  const std::vector<Range> keys = random_ranges(200);
  const std::vector<KeyShare> shares = share_keys(has, keys);
  const auto covers = [](const std::vector<Range>& ranges, std::int64_t token) {
    return std::ranges::any_of(
        ranges, [&](Range range) { return range.begin <= token && token < range.end; });
  };
  for (std::int64_t token = 0; token < 200; ++token) {
    std::ptrdiff_t having = 0, alone = 0, shared = 0;
    for (std::size_t i = 0; i < has.size(); ++i) {
      const bool given = covers(shares[i].alone, token) || covers(shares[i].shared, token);
      RC_ASSERT(!given || covers(has[i], token));
      having += covers(has[i], token);
      alone += covers(shares[i].alone, token);
      shared += covers(shares[i].shared, token);
    }
    const bool wanted = covers(keys, token) && having > 0;
    RC_ASSERT(alone == (wanted && having == 1 ? 1 : 0));
    RC_ASSERT(shared == (wanted && having > 1 ? 1 : 0));
  }
}

/// Bytes of one pass that cross between nodes.
std::int64_t bytes_across(const ParallelProblem& problem, const RankPlan& plan, bool backward) {
  const int node = problem.ranks_per_node;
  std::int64_t bytes = 0;
  for (const Op& op : backward ? plan.backward : plan.forward) {
    const auto* exchange = std::get_if<Exchange>(&op.what);
    if (exchange == nullptr) continue;
    for (const Message& m : exchange->sends) {
      if (m.peer / node == plan.rank / node) continue;
      bytes += region_bytes(plan, m.region, problem.problem.head_dim, problem.problem.dtype);
    }
  }
  return bytes;
}

/// Keys of other nodes that each node sees, counted with queries to the mask alone.
std::int64_t keys_across(const ParallelProblem& problem) {
  const Grid grid(problem, {.ordered_by_node = true});
  std::int64_t keys = 0;
  for (int begin = 0; begin < problem.ranks; begin += problem.ranks_per_node) {
    const int end = std::min(begin + problem.ranks_per_node, problem.ranks);
    std::vector<Range> rows, elsewhere;
    for (int rank = 0; rank < problem.ranks; ++rank) {
      const std::vector<Range> own = grid.cp_rank_shard(rank).ranges;
      std::vector<Range>& into = rank >= begin && rank < end ? rows : elsewhere;
      into.insert(into.end(), own.begin(), own.end());
    }
    join_ranges(rows);
    join_ranges(elsewhere);
    keys += count_seen_keys(problem.mask, rows, elsewhere);
  }
  return keys;
}

/// Whether as much crosses as must where queries stay with their owners.
bool each_key_crosses_once(const ParallelProblem& problem) {
  const Problem& p = problem.problem;
  std::int64_t forward = 0, backward = 0;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    const RankPlan plan = find_scheme("magi").plan(problem, rank);
    forward += bytes_across(problem, plan, false);
    backward += bytes_across(problem, plan, true);
  }
  const std::int64_t elements = keys_across(problem) * 2 * p.heads_k * p.head_dim;
  return forward == elements * size_of(p.dtype) &&
         (!p.backward || backward == elements * (size_of(p.dtype) + 4));
}

RC_GTEST_PROP(Relays, EachKeyCrossesIntoANodeOnce, ()) {
  ParallelProblem problem = random_problem(300);
  problem.ranks_per_node = *rc::gen::element(2, 4);
  RC_PRE(problem.shard != ShardKind::document_zigzag && problem.ranks > problem.ranks_per_node);
  RC_ASSERT(each_key_crosses_once(problem));
}

/// 8K tokens of prolong64k on each of 16 ranks, in nodes of 2, 4 and 8.
TEST(Relays, EachKeyOfEveryMaskCrossesOnceAtFullSize) {
  for (const MaskTraits& traits : mask_table()) {
    MaskSpec spec;
    spec.name = traits.name;
    spec.tokens = traits.uses_blocks ? 16 * 512 : 16 * 8192;
    GeneratedMask generated = generate_mask(spec);
    ParallelProblem problem =
        problem_of(std::move(generated.mask), std::move(generated.lengths), 8, 8, 16);
    for (const ShardKind shard : {ShardKind::balanced, ShardKind::document_balanced}) {
      for (const int node : {2, 4, 8}) {
        problem.shard = shard;
        problem.ranks_per_node = node;
        EXPECT_TRUE(each_key_crosses_once(problem))
            << traits.name << ", " << to_string(shard) << ", nodes of " << node;
      }
    }
  }
}

/// Nothing is relayed in one node, and none in nodes of one rank: the same plans.
RC_GTEST_PROP(Relays, PlansOfOneNodeHaveNone, ()) {
  ParallelProblem problem = random_problem(100);
  const int rank = uniform(0, problem.ranks);
  problem.ranks_per_node = problem.ranks;
  const RankPlan one = find_scheme("magi").plan(problem, rank);
  problem.ranks_per_node = 1;
  const RankPlan each = find_scheme("magi").plan(problem, rank);
  const Problem& p = problem.problem;
  RC_ASSERT(explain(one, p.head_dim, p.dtype) == explain(each, p.head_dim, p.dtype));
}

TEST(NodeOrder, BringsPartsOfADocumentTogether) {
  // Two documents, whose parts alternate.
  const std::vector<MaskSlice> slices = {{0, 400, 0, 400, MaskSliceType::full},
                                         {400, 800, 400, 800, MaskSliceType::full}};
  const Mask mask = Mask::from_slices(800, 800, slices);
  Lists parts;
  for (int i = 0; i < 4; ++i) {
    parts.push_back({{100 * i, 100 * i + 100}});
    parts.push_back({{400 + 100 * i, 400 + 100 * i + 100}});
  }
  EXPECT_EQ(node_order(mask, parts, 4), (std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(NodeOrder, LeavesAnOrderThatIsNoWorse) {
  const Mask mask = Mask::from_slices(80, 80, {{0, 80, 0, 80, MaskSliceType::full}});
  const Lists parts = {{{60, 80}}, {{0, 20}}, {{40, 60}}, {{20, 40}}};
  EXPECT_EQ(node_order(mask, parts, 2), (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace longca::testing
