#include "simulate/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/error.h"
#include "simulate/works.h"

namespace longca::simulate {
namespace {

using testing::add_exchange;
using ::testing::AllOf;
using testing::computing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ideal_cluster;
using testing::ring;

double end_of(std::vector<RankWork> works, const Cluster& cluster) {
  return run(link(std::move(works)), cluster, Exchanges::run).end();
}

TEST(Engine, AMessageHasTheRateOfItsLink) {
  EXPECT_DOUBLE_EQ(end_of(ring(2, 1000), ideal_cluster()), 11);  // 10 s on NVLink, then a second
}

TEST(Engine, AMessageBetweenNodesHasTheRateOfANic) {
  EXPECT_DOUBLE_EQ(end_of(ring(16, 1000, 8), ideal_cluster(2)), 101);
}

TEST(Engine, GpusThatShareANicShareItsRate) {
  Cluster cluster = ideal_cluster(2);
  cluster.fabric->nics = 2;
  EXPECT_DOUBLE_EQ(end_of(ring(16, 1000, 8), cluster), 401);
}

TEST(Engine, AGpuThatHasSeveralNicsHasTheRateOfAll) {
  Cluster cluster = ideal_cluster(2);
  cluster.fabric->nics = 32;
  EXPECT_DOUBLE_EQ(end_of(ring(16, 1000, 8), cluster), 26);
  cluster.fabric->oversubscription = 4;  // of all 32
  EXPECT_DOUBLE_EQ(end_of(ring(16, 1000, 8), cluster), 101);
  cluster.fabric->oversubscription = 1;
  cluster.fabric->nics = 2'000'000'000;  // no link for each
  EXPECT_GT(end_of(ring(16, 1000, 8), cluster), 1);
}

TEST(Engine, AnOversubscribedFabricIsSharedByTheNode) {
  Cluster cluster = ideal_cluster(2);
  cluster.fabric->oversubscription = 4;
  EXPECT_DOUBLE_EQ(end_of(ring(16, 1000, 8), cluster), 401);
}

TEST(Engine, OnAnIdealNetworkAPassTakesItsComputeTime) {
  Cluster cluster = ideal_cluster();
  cluster.platform.links.bytes_per_second = 1e30;
  EXPECT_DOUBLE_EQ(end_of(ring(8, 1000), cluster), 2);
  const Program program = link(ring(8, 1000));
  EXPECT_DOUBLE_EQ(run(program, ideal_cluster(), Exchanges::skip).end(), 2);
}

TEST(Engine, DoublingEveryRateHalvesTheTime) {
  std::vector<RankWork> works = ring(16, 700, 3);
  Cluster cluster = ideal_cluster(2);
  cluster.fabric->oversubscription = 2;
  const double before = end_of(works, cluster);
  cluster.platform.links.bytes_per_second *= 2;
  cluster.fabric->nic_bytes_per_second *= 2;
  for (RankWork& work : works) {
    for (TimedOp& op : work.ops) op.seconds /= 2;
  }
  EXPECT_DOUBLE_EQ(end_of(works, cluster), before / 2);
}

TEST(Engine, MessagesOfOneRankLeaveOneAfterTheOther) {
  Cluster cluster = ideal_cluster();
  cluster.platform.links.seconds_per_exchange = 3;
  cluster.platform.links.seconds_per_message = 0.5;
  std::vector<RankWork> works(3);
  add_exchange(works[0], {{1, 100}, {2, 200}}, {});
  add_exchange(works[1], {}, {{0, 100}});
  add_exchange(works[2], {}, {{0, 200}});
  const SimulatedPass pass = run(link(works), cluster, Exchanges::run);
  EXPECT_DOUBLE_EQ(pass.ends[1], 4);
  EXPECT_DOUBLE_EQ(pass.ends[2], 4 + 0.5 + 2);
  EXPECT_DOUBLE_EQ(pass.ends[0], 6.5);
}

TEST(Engine, OneKernelWritesTheMessagesOfAnExchangeThatIsAlone) {
  Cluster cluster = ideal_cluster();
  cluster.platform.links.seconds_per_message = 0.5;
  std::vector<RankWork> works(3);
  add_exchange(works[0], {{1, 100}, {2, 100}}, {});
  works[0].exchanges[0].alone = true;
  add_exchange(works[1], {}, {{0, 100}});
  add_exchange(works[2], {}, {{0, 100}});
  const SimulatedPass pass = run(link(works), cluster, Exchanges::run);
  EXPECT_DOUBLE_EQ(pass.ends[1], 2);  // at half of the port's rate
  EXPECT_DOUBLE_EQ(pass.ends[2], 2);
}

TEST(Engine, ASenderWaitsForTheGrantOfItsReceiver) {
  std::vector<RankWork> works(2);
  add_exchange(works[0], {{1, 100}}, {});
  works[1].ops.push_back(computing(5));
  add_exchange(works[1], {}, {{0, 100}}, {0});
  EXPECT_DOUBLE_EQ(end_of(works, ideal_cluster()), 6);
  works[1].exchanges[0].lands_early = true;
  EXPECT_DOUBLE_EQ(end_of(works, ideal_cluster()), 5);
}

TEST(Engine, ARankBeginsAtItsStartAndIsWaitedFor) {
  Cluster cluster = ideal_cluster();
  const Program both_ways = link(ring(2, 100));
  const std::vector<double> starts = {0, 3};
  EXPECT_THAT(run(both_ways, cluster, Exchanges::run, starts).ends, ElementsAre(5, 5));
  EXPECT_THAT(run(both_ways, cluster, Exchanges::skip, starts).ends, ElementsAre(2, 5));
  cluster.platform.links.seconds_to_begin = 0.5;
  EXPECT_THAT(run(both_ways, cluster, Exchanges::run, starts).ends, ElementsAre(5.5, 5.5));
}

TEST(Engine, ARankWhosePassHasNotBegunGrantsNothingEarly) {
  std::vector<RankWork> works(2);
  add_exchange(works[0], {{1, 100}}, {});
  works[1].ops.push_back(computing(5));
  add_exchange(works[1], {}, {{0, 100}}, {0});
  works[1].exchanges[0].lands_early = true;
  const std::vector<double> starts = {0, 3};
  EXPECT_THAT(run(link(works), ideal_cluster(), Exchanges::run, starts).ends, ElementsAre(4, 8));
}

TEST(Engine, ThePassBeginsWithAMeeting) {
  Cluster cluster = ideal_cluster();
  cluster.platform.links.seconds_to_begin = 7;
  EXPECT_DOUBLE_EQ(end_of(ring(2, 100), cluster), 7 + 1 + 1);
}

TEST(Engine, KernelsAreSlowerBesideMessages) {
  Cluster cluster = ideal_cluster();
  cluster.platform.node.covered_cost_within = 0.25;
  // 100 bytes take a second, in which three quarters of the first op are done.
  EXPECT_DOUBLE_EQ(end_of(ring(2, 100), cluster), 1.25 + 1);
}

TEST(Engine, PassesOverMemoryAreSlowedBesideMessagesByAShareOfTheirOwn) {
  Cluster cluster = ideal_cluster();
  cluster.platform.node.covered_cost_within = 0.25;
  cluster.platform.node.memory_slowdown_within = 0.5;
  std::vector<RankWork> works = ring(2, 100);
  for (RankWork& work : works) {
    for (TimedOp& op : work.ops) op.cycle_seconds = 0;
  }
  EXPECT_DOUBLE_EQ(end_of(works, cluster), 1.5 + 1);
}

TEST(Engine, RowWorkOfLaterStepsIsDoneBeforeTheFirstWait) {
  std::vector<RankWork> works = ring(2, 200);  // a second of waiting
  const double late = end_of(works, ideal_cluster());
  for (RankWork& work : works) {
    work.early_before = 2;
    work.early_seconds = 0.5;
    work.ops[2].seconds -= 0.5;
  }
  EXPECT_DOUBLE_EQ(end_of(works, ideal_cluster()), late - 0.5);
}

TEST(Engine, ArrivedBytesAreThoseOfTheMessages) {
  const SimulatedPass pass = run(link(ring(16, 700, 5)), ideal_cluster(2), Exchanges::run);
  for (const std::int64_t bytes : pass.bytes_sent) EXPECT_EQ(bytes, 700);
}

TEST(Engine, IsTheSameToTheBitFromRunToRun) {
  const auto once = [] {
    std::vector<RankWork> works = ring(24, 700, 5);
    for (std::size_t i = 0; i < works.size(); ++i) {
      works[i].ops[0].seconds += 0.1 * static_cast<double>(i * i % 7);
    }
    return run(link(std::move(works)), ideal_cluster(3), Exchanges::run).ends;
  };
  EXPECT_EQ(once(), once());
}

TEST(Engine, NamesTheRanksOfADeadlock) {
  std::vector<RankWork> works(2);
  add_exchange(works[0], {{1, 8}}, {});
  add_exchange(works[0], {}, {{1, 8}});
  add_exchange(works[1], {{0, 8}}, {});
  add_exchange(works[1], {}, {{0, 8}});
  const Program program = link(works);
  try {
    run(program, ideal_cluster(), Exchanges::run);
    FAIL() << "no deadlock";
  } catch (const InternalError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("deadlock: rank 0 waits in op 0 for rank 1; rank 1 waits in op 0 for rank 0"));
  }
}

TEST(Engine, RefusesMoreRanksThanGpus) {
  const Program program = link(ring(9, 8));
  try {
    run(program, ideal_cluster(), Exchanges::run);
    FAIL() << "9 ranks on 8 GPUs";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has 8 GPUs, and 9 ranks are asked for"));
  }
}

TEST(Engine, TracesTheOpsThatTakeTime) {
  const SimulatedPass pass = run(link(ring(2, 200)), ideal_cluster(), Exchanges::run);
  const auto times = trace_times(pass, 1);
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[1].op, 1);
  EXPECT_DOUBLE_EQ(times[1].begin_ms, 0);
  EXPECT_DOUBLE_EQ(times[1].end_ms, 2000);
  EXPECT_DOUBLE_EQ(times[2].begin_ms, 2000);
}

}  // namespace
}  // namespace longca::simulate
