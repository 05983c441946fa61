#include "bench/ranks/exchange_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dist/dist_test.h"
#include "parallel/executor/faults.h"

namespace longca::testing {
namespace {

using ::testing::StartsWith;

const std::vector<TimedExchange> kExchanges = {{"mpi", ExchangeShape::ring, 1024},
                                               {"mpi", ExchangeShape::all_to_all, 1 << 20},
                                               {"mpi", ExchangeShape::ring, 4096, 4, 1},
                                               {"mpi", ExchangeShape::ring, 1024, 1, 8}};

RunLimits short_limits() {
  RunLimits limits;
  limits.time_limit_s = 0.01;
  limits.cool_down_ms = 0;
  return limits;
}

TEST(ExchangeTimes, AllRanksHaveTheSameTimes) {
  RankTeam team = make_team(world());
  std::vector<std::string> stages;
  const std::vector<ExchangeMs> times =
      time_exchanges(team, kExchanges, short_limits(),
                     [&](std::string_view stage) { stages.emplace_back(stage); });
  ASSERT_EQ(times.size(), kExchanges.size());
  for (const ExchangeMs& time : times) {
    EXPECT_GT(time.ms, 0);
    EXPECT_EQ(world().control().max(time.ms), time.ms);
    EXPECT_EQ(world().control().broadcast(time.ms), time.ms);
    EXPECT_TRUE(time.held);
  }
  EXPECT_THAT(stages,
              ::testing::ElementsAre("set-up", to_text(kExchanges[0]), to_text(kExchanges[1]),
                                     to_text(kExchanges[2]), to_text(kExchanges[3])));
}

/// Changes a byte of what rank 2 has received, from its `first` exchange on.
class FlipsAByte final : public test::ForwardingCommunicator {
 public:
  FlipsAByte(std::unique_ptr<Communicator> inner, int first)
      : ForwardingCommunicator(*inner), owned_(std::move(inner)), first_(first) {}
  int prepare(const TransferGroup& group) override {
    received_ = group.receives.back();
    return ForwardingCommunicator::prepare(group);
  }
  void finish(int group) override {
    ForwardingCommunicator::finish(group);
    if (rank() != 2 || ++finished_ < first_) return;
    static_cast<unsigned char*>(received_.data)[received_.bytes() - 1] ^= 0x80;
  }

 private:
  std::unique_ptr<Communicator> owned_;
  int first_;
  int finished_ = 0;
  Transfer received_;
};

TEST(ExchangeTimes, AWrongByteRefusesAllRanksWithASentence) {
  for (const int first : {1, 3}) {  // the first call, and repetitions that are timed
    RankTeam team = make_team(world());
    team.connect = [&](const std::string&) {
      return std::make_unique<FlipsAByte>(world().make_communicator(), first);
    };
    try {
      time_exchanges(team, kExchanges, short_limits(), [](std::string_view) {});
      ADD_FAILURE() << "a wrong byte passed";
    } catch (const Refused& refused) {
      EXPECT_EQ(refused.status().code, StatusCode::wrong);
      EXPECT_THAT(refused.status().reason,
                  StartsWith("rank 2: ring of 1024 bytes over mpi: byte 1023 of 1024 from rank 1"));
    }
  }
}

TEST(ExchangeTimes, WhatTheRanksCannotUseIsRefused) {
  RankTeam team = make_team(world());
  team.available = [](const std::string&) { return Support::unavailable("no such wire"); };
  EXPECT_THROW(time_exchanges(team, kExchanges, short_limits(), [](std::string_view) {}), Refused);
}

}  // namespace
}  // namespace longca::testing
