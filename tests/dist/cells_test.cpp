#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/ranks/min_bytes.h"
#include "bench/ranks/rank_runner.h"
#include "dist/dist_test.h"
#include "mask/generators.h"
#include "parallel/schemes/scheme.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Case small_case(const std::string& scheme, const std::string& mask, Pass pass) {
  Case c;
  c.kernel = "flash";
  c.mask = mask;
  c.tokens = 515;  // no rank count divides it
  c.heads_q = 8;
  c.heads_k = 4;
  c.head_dim = 32;
  c.dtype = DType::float32;
  c.pass = pass;
  c.scheme = scheme;
  c.ranks = world().control().size();
  c.shard = std::string(to_string(find_scheme(scheme).published_shard()));
  c.transport = "mpi";
  const MaskTraits& traits = mask_traits(mask);
  if (traits.uses_lengths) c.lengths = "pile";
  if (traits.uses_window) c.window = 40;
  if (traits.uses_blocks) {
    c.block = 32;
    c.density = 0.3;
    c.block_heads = "kv";
  }
  return c;
}

/// Runs cells on all ranks.
class Cells : public ::testing::Test {
 protected:
  bool is_root() const { return world().control().rank() == 0; }
  Record run(const Case& c, const CellOptions& options = cell_options()) {
    return runner_.run(c, options);
  }
  void expect_ok(const Case& c) {
    const Record record = run(c);
    EXPECT_TRUE(record.status.ok()) << c.key() << ": " << record.status.reason;
    if (!is_root()) return;
    EXPECT_EQ(record.metrics.at("verified_fraction"), 1.0);
    EXPECT_GT(record.metrics.at("peak_bytes"), 0);
    EXPECT_GE(record.metrics.at("plan_ms"), record.metrics.at("scheme_plan_ms"));
    EXPECT_THAT(record.notes.at("transport"), HasSubstr("mpi, "));
    EXPECT_TRUE(record.samples_ms.empty());
  }
  /// Every rank hears of it.
  void expect_refused(const Case& c, StatusCode code, const std::string& part,
                      const CellOptions& options = cell_options()) {
    const Record record = run(c, options);
    EXPECT_EQ(record.status.code, code) << record.status.reason;
    EXPECT_THAT(record.status.reason, HasSubstr(part));
  }

 private:
  RankTeam team_ = make_team(world());

 protected:
  std::vector<std::string> stages_;  ///< of this rank
  RankRunner runner_{team_, [this](std::string_view stage) { stages_.emplace_back(stage); }};
};

TEST_F(Cells, OfEverySchemeAreRight) {
  for (const auto& scheme : schemes()) {
    for (const char* mask : {"causal_document", "global_sliding_window", "block_sparse"}) {
      for (const Pass pass : kPasses) {
        expect_ok(small_case(scheme->name(), mask, pass));
      }
    }
  }
}

TEST_F(Cells, OfEveryShardingAreRight) {
  for (const std::string& shard : shard_kind_names()) {
    Case c = small_case("ring_p2p", "causal_document", Pass::backward);
    c.shard = shard;
    expect_ok(c);
  }
}

TEST_F(Cells, OfFewerTokensThanRanksAreRight) {
  for (const auto& scheme : schemes()) {
    Case c = small_case(scheme->name(), "causal", Pass::backward);
    c.tokens = 3;
    expect_ok(c);
  }
}

TEST_F(Cells, SendWhatTheFormulaSays) {
  for (const auto& scheme : schemes()) {
    for (const Pass pass : kPasses) {
      Case c = small_case(scheme->name(), "full", pass);
      c.tokens = 512;
      const Record record = run(c);
      if (!is_root()) continue;
      ASSERT_TRUE(record.status.ok()) << record.status.reason;
      EXPECT_EQ(record.metrics.at("bytes_sent"), record.metrics.at("bytes_formula")) << c.key();
      EXPECT_GT(record.metrics.at("bytes_sent"), 0);
      EXPECT_EQ(record.metrics.at("padding_tokens"), 0);
      EXPECT_EQ(record.metrics.at("imbalance"), 1.0);
    }
  }
}

TEST_F(Cells, OfBfloat16AreTimedTogether) {
  Case c = small_case("usp", "causal", Pass::forward);
  c.dtype = DType::bfloat16;
  for (const char* mode : {"burst", "sustained"}) {
    c.mode = mode;
    const Record record = run(c, cell_options(0.1));
    RankControl& control = world().control();
    EXPECT_EQ(control.max(static_cast<double>(record.samples_ms.size())),
              static_cast<double>(record.samples_ms.size()));
    if (!is_root()) continue;
    ASSERT_TRUE(record.status.ok()) << record.status.reason;
    EXPECT_GE(record.samples_ms.size(), 2U);  // the least of the stopping rule on a busy machine
    EXPECT_EQ(std::ssize(record.rank_times_ms), control.size());
    EXPECT_THAT(record.stop, ::testing::AnyOf("converged", "time_limit"));
    const auto& metrics = record.metrics;
    EXPECT_GT(metrics.at("time_ms"), 0);
    EXPECT_GT(metrics.at("compute_ms"), 0);
    EXPECT_EQ(metrics.at("exposed_comm_ms"), metrics.at("time_ms") - metrics.at("compute_ms"));
    EXPECT_GE(metrics.at("time_imbalance"), 1.0);
    EXPECT_NEAR(metrics.at("tflops") * metrics.at("time_ms") * 1e9 * control.size(),
                4.0 * metrics.at("area") * c.heads_q * c.head_dim, 1.0);
  }
}

TEST_F(Cells, AreTracedInAStageOfTheirOwn) {
  CellOptions options = cell_options(0.1);
  options.trace = true;
  const Record record = run(small_case("ring_p2p", "causal", Pass::backward), options);
  EXPECT_TRUE(record.status.ok()) << record.status.reason;
  ASSERT_GE(stages_.size(), 3U);
  EXPECT_THAT(std::vector(stages_.end() - 3, stages_.end()),
              ElementsAre("timing", "trace", "clean-up"));
  EXPECT_EQ(runner_.take_trace().size(), is_root() ? 4U : 0U);
  expect_refused(small_case("ring_p2p", "causal", Pass::step), StatusCode::unsupported,
                 "one pass is traced, not a step", options);
  EXPECT_TRUE(runner_.take_trace().empty());
}

TEST_F(Cells, ThatASchemeOrAKernelCannotDoAreRefusedOnAllRanks) {
  Case c = small_case("ulysses", "causal", Pass::forward);
  c.heads_q = c.heads_k = 6;  // four ranks do not divide them
  expect_refused(c, StatusCode::unsupported, "6");
  c = small_case("ulysses", "causal", Pass::forward);
  c.mode = "graph";
  expect_refused(c, StatusCode::unsupported, "mode graph");
  c = small_case("ulysses", "causal", Pass::forward);
  c.ranks = 7;
  expect_refused(c, StatusCode::unsupported, "7 ranks, but 4 run");
  c = small_case("ulysses", "causal", Pass::forward);
  c.kernel = "block_sparse";
  expect_refused(c, StatusCode::unsupported, "block");
  expect_ok(small_case("ulysses", "causal", Pass::forward));
}

TEST_F(Cells, PastTheMemoryLimitAreRefusedBeforeAnythingIsTaken) {
  Case c = small_case("ring_p2p", "causal", Pass::forward);
  c.tokens = 20'000;
  CellOptions options = cell_options();
  options.limits.memory_limit_mib = 8;
  expect_refused(c, StatusCode::oom, "pass the memory limit of 8 MiB", options);
}

TEST_F(Cells, WhosePlanFailsOnOneRankEndThereAndTheNextOneRuns) {
  const Case c = small_case("ring_p2p", "causal", Pass::forward);
  runner_.alter_plans([](RankPlan& plan) {
    if (plan.rank == 2) throw std::runtime_error("no plan today");
  });
  expect_refused(c, StatusCode::crash, "rank 2: threw in plan: no plan today");
  runner_.alter_plans(nullptr);
  expect_ok(c);
}

/// As on two hosts: keys that both ranks of a node see go to one of them, which passes them on.
TEST(CellsOfNodes, OfEveryMaskAreRightInNodesOfTwo) {
  RankTeam team = make_team(world());
  team.ranks_per_node = 2;
  RankRunner runner(team, [](std::string_view) {});
  for (const MaskTraits& mask : mask_table()) {
    for (const char* shard : {"balanced", "document_balanced", "zigzag"}) {
      for (const Pass pass : kPasses) {
        Case c = small_case("magi", mask.name, pass);
        c.shard = shard;
        const Record record = runner.run(c, cell_options());
        EXPECT_TRUE(record.status.ok()) << c.key() << ": " << record.status.reason;
        if (world().control().rank() != 0) continue;
        EXPECT_EQ(record.metrics.at("verified_fraction"), 1.0);
        EXPECT_EQ(record.metrics.at("bytes_sent"), record.metrics.at("bytes_formula")) << c.key();
        EXPECT_THAT(record.notes.at("plan"), HasSubstr("keys cross into nodes of 2 ranks once"));
      }
    }
  }
}

/// Against the dense mask.
std::int64_t rows_seen(const Mask& mask, int heads_k, Range own, bool by_own) {
  const std::int64_t n = mask.q_tokens();
  std::int64_t seen = 0;
  for (int head = 0; head < heads_k; ++head) {
    const int list = static_cast<int>(std::int64_t{head} * mask.heads() / heads_k);
    const auto dense = mask.dense(list);
    for (std::int64_t k = 0; k < n; ++k) {
      const bool owned = k >= own.begin && k < own.end;
      bool found = false;
      for (std::int64_t q = 0; q < n && owned != by_own; ++q) {
        const bool own_query = q >= own.begin && q < own.end;
        found |= own_query == by_own && dense[static_cast<std::size_t>(q * n + k)] != 0;
      }
      seen += found ? 1 : 0;
    }
  }
  return seen;
}

TEST(LeastBytes, CountTheRowsThatOthersHave) {
  for (const MaskTraits& traits : mask_table()) {
    const Case c = small_case("magi", traits.name, Pass::backward);
    MaskSpec spec = c.mask_spec();
    spec.tokens = 200;
    const Mask mask = generate_mask(spec).mask;
    Problem problem = c.problem();
    const Range own{50, 120};
    problem.backward = false;
    const std::int64_t in = rows_seen(mask, 4, own, true);
    EXPECT_EQ(min_bytes_received(problem, mask, {&own, 1}), in * 2 * 32 * 4) << traits.name;
    problem.backward = true;
    const std::int64_t back = rows_seen(mask, 4, own, false);
    EXPECT_EQ(min_bytes_received(problem, mask, {&own, 1}), (in + back) * 2 * 32 * 4)
        << traits.name;
  }
}

}  // namespace
}  // namespace longca::testing
