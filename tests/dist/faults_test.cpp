#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "bench/ranks/rank_runner.h"
#include "dist/dist_test.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

Case causal_case(const std::string& scheme, Pass pass) {
  Case c;
  c.kernel = "flash";
  c.mask = "causal";
  c.tokens = 512;
  c.heads_q = 4;
  c.heads_k = 2;
  c.head_dim = 32;
  c.dtype = DType::float32;
  c.pass = pass;
  c.scheme = scheme;
  c.ranks = world().control().size();
  c.shard = "zigzag";
  c.transport = "mpi";
  return c;
}

/// A fault that one rank's plan has, and what the verdict must name.
void expect_wrong(const Case& c, int rank, const std::function<bool(RankPlan&)>& plant,
                  const std::string& part) {
  RankTeam team = make_team(world());
  RankRunner runner(team, [](std::string_view) {});
  bool planted = false;
  runner.alter_plans([&](RankPlan& plan) {
    if (plan.rank == rank) planted = plant(plan);
  });
  const Record record = runner.run(c, cell_options(0.1));
  EXPECT_EQ(planted, world().control().rank() == rank);
  EXPECT_EQ(record.status.code, StatusCode::wrong) << record.status.reason;
  if (world().control().rank() != 0) return;
  EXPECT_THAT(record.status.reason, HasSubstr(part));
  EXPECT_TRUE(record.samples_ms.empty());
  EXPECT_FALSE(record.metrics.contains("time_ms"));
}

/// The step forgets what earlier ones have found: o and lse of its own keys alone remain.
bool drop_merge(RankPlan& plan) {
  for (Op& op : plan.forward) {
    if (auto* attend = std::get_if<Attend>(&op.what); attend != nullptr && !attend->first) {
      attend->first = true;
      return true;
    }
  }
  return false;
}

/// Two messages of one shape land in each other's place.
bool swap_chunks(std::vector<Op>& ops) {
  Region* previous = nullptr;
  for (Op& op : ops) {
    auto* exchange = std::get_if<Exchange>(&op.what);
    if (exchange == nullptr) continue;
    for (Message& message : exchange->receives) {
      Region& region = message.region;
      if (previous != nullptr && previous->tokens.size() == region.tokens.size() &&
          previous->heads.size() == region.heads.size() && *previous != region) {
        std::swap(*previous, region);
        return true;
      }
      previous = &region;
    }
  }
  return false;
}

/// What arrives last is not added.
bool drop_part(RankPlan& plan) {
  for (auto op = plan.backward.rbegin(); op != plan.backward.rend(); ++op) {
    auto* total = std::get_if<Total>(&op->what);
    if (total == nullptr || total->parts.size() < 2) continue;
    total->parts.pop_back();
    return true;
  }
  return false;
}

TEST(Faults, AWrongMergeIsSeen) {
  expect_wrong(causal_case("ring_p2p", Pass::forward), 1, drop_merge, "");
}

TEST(Faults, ASwappedChunkIsSeen) {
  const auto swap = [](RankPlan& plan) { return swap_chunks(plan.forward); };
  expect_wrong(causal_case("ring_allgather", Pass::forward), 3, swap, "");
  expect_wrong(causal_case("ulysses", Pass::forward), 2, swap, "");
}

TEST(Faults, AGradientThatIsNotAddedIsSeen) {
  expect_wrong(causal_case("ring_allgather", Pass::backward), 2, drop_part, "");
}

TEST(Faults, AWrongForwardPassIsToldApartFromTheGradients) {
  expect_wrong(causal_case("ring_p2p", Pass::backward), 0, drop_merge, "its own forward pass: ");
}

}  // namespace
}  // namespace longca::testing
