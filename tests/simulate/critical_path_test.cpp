#include "simulate/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulate/works.h"

namespace longca::simulate {
namespace {

using testing::add_exchange;
using testing::computing;
using testing::ideal_cluster;

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
  const auto sentences = critical_path(program, run(program, cluster, Exchanges::run), cluster);
  EXPECT_THAT(sentences, ::testing::ElementsAre(
                             "rank 0 computes for 2000.000 ms",
                             "rank 1 waits 2000.000 ms for 2 KiB of keys from rank 0 over NVLink",
                             "rank 1 computes for 1500.000 ms"));
}

TEST(CriticalPath, NamesTheNicBetweenNodes) {
  const Cluster cluster = ideal_cluster(2);
  const Program program = link(testing::ring(16, 1024, 8));
  const auto sentences = critical_path(program, run(program, cluster, Exchanges::run), cluster);
  ASSERT_FALSE(sentences.empty());
  EXPECT_THAT(sentences.front(), ::testing::EndsWith("over the NIC"));
}

}  // namespace
}  // namespace longca::simulate
