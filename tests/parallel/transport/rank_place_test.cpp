#include "parallel/transport/rank_place.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace longca::test {
namespace {

RankPlace place(const std::string& host, const std::string& boot, const std::string& gpu) {
  RankPlace place;
  host.copy(place.host.data(), place.host.size() - 1);
  boot.copy(place.boot.data(), place.boot.size() - 1);
  gpu.copy(place.gpu.data(), place.gpu.size() - 1);
  return place;
}

TEST(RankPlaces, BothRanksOfASharedGpuAreNamed) {
  std::vector<RankPlace> places = {place("a", "1", "0:1"), place("a", "1", "0:2"),
                                   place("b", "2", "0:1"), place("a", "1", "0:2")};
  const Support shared = one_gpu_each(places);
  EXPECT_EQ(shared.code, StatusCode::unavailable);
  EXPECT_EQ(shared.reason, "ranks 1 and 3 share the GPU 0:2 of a: start at most one rank per GPU");
  places.pop_back();
  EXPECT_TRUE(one_gpu_each(places).ok());
}

TEST(RankPlaces, BothRanksOfTwoHostsAreNamed) {
  const std::vector<RankPlace> places = {place("a", "1", "0:1"), place("a", "1", "0:2"),
                                         place("b", "2", "0:1")};
  EXPECT_EQ(all_on_host_of(1, places).reason,
            "peer copies inside one host, but rank 1 is on a and rank 2 on b");
  EXPECT_EQ(all_on_host_of(2, places).reason,
            "peer copies inside one host, but rank 2 is on b and rank 0 on a");
  EXPECT_EQ(all_on_host_of(1, places).code, StatusCode::unavailable);
  EXPECT_TRUE(all_on_host_of(1, std::span(places).first(2)).ok());
}

TEST(RankPlaces, HostsOfOneNameDifferInTheirBoot) {
  const std::vector<RankPlace> places = {place("vm", "1", "0:1"), place("vm", "2", "0:1")};
  EXPECT_TRUE(one_gpu_each(places).ok());
  EXPECT_FALSE(all_on_host_of(0, places).ok());
}

}  // namespace
}  // namespace longca::test
