#include "simulate/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulate/works.h"

namespace longca::simulate {
namespace {

using testing::add_exchange;
using testing::computing;
using ::testing::ElementsAre;
using testing::ideal_cluster;

/// Of the rank that ends last.
CriticalPath path_of(const Program& program, const Cluster& cluster) {
  const SimulatedPass pass = run(program, cluster, Exchanges::run);
  return critical_path(program, pass, cluster, pass.slowest());
}

TEST(CriticalPath, SaysWhoWaitsForWhatOverWhichLink) {
  std::vector<RankWork> works(2);
  works[0].ops.push_back(computing(2));
  add_exchange(works[0], {{1, 2048}}, {}, {0});
  add_exchange(works[1], {}, {{0, 2048}});
  works[1].ops.push_back(computing(1, {0}));
  works[1].ops.push_back(computing(0.5));
  Cluster cluster = ideal_cluster();
  cluster.platform.links.bytes_per_second = 1024;
  const Program program = link(works);
  EXPECT_THAT(path_of(program, cluster).sentences,
              ElementsAre("rank 0 computes for 2000.000 ms",
                          "rank 1 waits 2000.000 ms for 2 KiB of keys from rank 0 over NVLink",
                          "rank 1 computes for 1500.000 ms"));
}

/// A rank's ops wait for its early rows as they do for each other.
TEST(CriticalPath, HasTheRowsOfLaterSteps) {
  std::vector<RankWork> works(2);
  works[0].ops.push_back(computing(1));
  works[0].early_before = 1;
  works[0].early_seconds = 0.5;
  works[0].ops.push_back(computing(2));
  add_exchange(works[0], {{1, 100}}, {}, {1});
  add_exchange(works[1], {}, {{0, 100}});
  const Cluster cluster = ideal_cluster();
  const CriticalPath path = path_of(link(works), cluster);
  EXPECT_EQ(path.first, 0);
  EXPECT_THAT(path.sentences,
              ElementsAre("rank 0 computes for 3500.000 ms",
                          "rank 0 waits 1000.000 ms until 100 B of keys have left for rank 1 over "
                          "NVLink"));
}

/// A receiver that takes messages early holds its sender up until its pass begins, no longer.
TEST(CriticalPath, GoesBackToTheStartOfTheRankThatIsWaitedFor) {
  std::vector<RankWork> works(2);
  add_exchange(works[0], {{1, 100}}, {});
  works[1].ops.push_back(computing(1.5));
  add_exchange(works[1], {}, {{0, 100}}, {0});
  works[1].exchanges[0].lands_early = true;
  works[0].ops.push_back(computing(4, {0}));
  const Cluster cluster = ideal_cluster();
  const Program program = link(works);
  const std::vector<double> starts = {0, 3};
  const SimulatedPass pass = run(program, cluster, Exchanges::run, starts);
  EXPECT_EQ(pass.slowest(), 0);
  const CriticalPath path = critical_path(program, pass, cluster, 0);
  EXPECT_EQ(path.first, 1) << "from 3 s, where its pass begins";
  EXPECT_THAT(path.sentences,
              ElementsAre("rank 0 waits 1000.000 ms until 100 B of keys have left for rank 1 over "
                          "NVLink",
                          "rank 0 computes for 4000.000 ms"));
}

TEST(CriticalPath, NamesTheNicBetweenNodes) {
  const Cluster cluster = ideal_cluster(2);
  const Program program = link(testing::ring(16, 1024, 8));
  const auto sentences = path_of(program, cluster).sentences;
  ASSERT_FALSE(sentences.empty());
  EXPECT_THAT(sentences.front(), ::testing::EndsWith("over the NIC"));
}

}  // namespace
}  // namespace longca::simulate
