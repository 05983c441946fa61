#include "bench/ranks/exchange_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/ranks/exchange_times.h"
#include "core/error.h"
#include "parallel/executor/faults.h"
#include "parallel/executor/thread_ranks.h"

namespace longca {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Device& cpu() {
  return Device::get(DeviceKind::cpu);
}

std::vector<TimedExchange> some_exchanges() {
  std::vector<TimedExchange> exchanges;
  for (const ExchangeShape shape : {ExchangeShape::ring, ExchangeShape::all_to_all}) {
    for (const std::int64_t bytes : {1, 17, 1024, 100'003}) {
      exchanges.push_back({"threads", shape, bytes});
      exchanges.push_back({"threads", shape, bytes, 3, 1});
      exchanges.push_back({"threads", shape, bytes, 1, 4});
    }
  }
  return exchanges;
}

/// What each rank finds wrong after a call.
std::vector<std::string> faults_of(
    const TimedExchange& exchange, int ranks, bool calls,
    const std::function<void(TransferGroup&, int rank)>& alter = {}) {
  class Altering final : public test::ForwardingCommunicator {
   public:
    Altering(Communicator& inner, const std::function<void(TransferGroup&, int)>& alter)
        : ForwardingCommunicator(inner), alter_(alter) {}
    int prepare(const TransferGroup& group) override {
      group_ = group;
      return ForwardingCommunicator::prepare(group);
    }
    void finish(int group) override {
      ForwardingCommunicator::finish(group);
      if (alter_) alter_(group_, rank());
    }

   private:
    const std::function<void(TransferGroup&, int)>& alter_;
    TransferGroup group_;
  };
  std::vector<std::string> faults(static_cast<std::size_t>(ranks));
  test::ThreadRanks(ranks).run([&](Communicator& inner) {
    Altering communicator(inner, alter);
    ExchangeWork work(communicator, cpu(), 100'003);
    work.prepare(exchange);
    work.poison();
    if (calls) work.call();
    faults[static_cast<std::size_t>(inner.rank())] = work.fault();
  });
  return faults;
}

TEST(ExchangeWork, EveryByteComesFromWhereItShould) {
  for (const int ranks : {2, 3, 5}) {
    for (const TimedExchange& exchange : some_exchanges()) {
      EXPECT_THAT(faults_of(exchange, ranks, true), Each("")) << to_text(exchange);
      EXPECT_THAT(faults_of(exchange, ranks, false), Each(HasSubstr("byte 0 of")))
          << to_text(exchange) << " without a call";
    }
  }
}

TEST(ExchangeWork, AWrongByteIsNamedWithItsSender) {
  const auto flip = [](TransferGroup& group, int rank) {
    if (rank != 1) return;
    static_cast<unsigned char*>(group.receives.back().data)[5] ^= 1;
  };
  const auto faults = faults_of({"threads", ExchangeShape::ring, 1024}, 3, true, flip);
  EXPECT_THAT(faults[1],
              AllOf(StartsWith("byte 5 of 1024 from rank 0 is 0x"), HasSubstr(", not ")));
  EXPECT_EQ(faults[0] + faults[2], "");
}

TEST(ExchangeWork, BytesOfAnotherSenderOrPlaceAreWrong) {
  const auto swap = [](TransferGroup& group, int rank) {
    if (rank != 0) return;
    auto* a = static_cast<unsigned char*>(group.receives.at(0).data);
    auto* b = static_cast<unsigned char*>(group.receives.at(1).data);
    std::swap_ranges(a, a + group.receives.at(0).bytes(), b);
  };
  const auto of_two = faults_of({"threads", ExchangeShape::all_to_all, 4096}, 3, true, swap);
  EXPECT_THAT(of_two[0], HasSubstr(" from rank 2 is 0x"));
  const auto of_one = faults_of({"threads", ExchangeShape::ring, 4096, 2, 1}, 2, true, swap);
  EXPECT_THAT(of_one[0], HasSubstr(" from rank 1 is 0x"));
}

TEST(ExchangeWork, EachRankSendsTheBytesThatAreAsked) {
  for (const TimedExchange& exchange : some_exchanges()) {
    test::ThreadRanks(3).run([&](Communicator& communicator) {
      ExchangeWork work(communicator, cpu(), exchange.bytes);
      work.prepare(exchange);
      communicator.reset_bytes_sent();
      work.call();
      EXPECT_EQ(communicator.bytes_sent(), exchange.exchanges * exchange.bytes)
          << to_text(exchange);
    });
  }
}

TEST(TimedExchange, ComesBackFromItsMessage) {
  for (const TimedExchange& exchange : some_exchanges()) {
    EXPECT_EQ(nlohmann::json(exchange).get<TimedExchange>(), exchange);
  }
  EXPECT_EQ(to_text({"mpi", ExchangeShape::all_to_all, 64, 2, 8}),
            "8 of all_to_all of 64 bytes in 2 messages over mpi");
  EXPECT_EQ(pattern_name({"peer", ExchangeShape::ring, 64}), "peer.ring");
}

TEST(TimedExchange, RefusesOtherMessages) {
  nlohmann::json json = TimedExchange{"mpi", ExchangeShape::ring, 64};
  for (const char* key : {"bytes", "messages", "exchanges"}) {
    nlohmann::json bad = json;
    bad[key] = 0;
    EXPECT_THROW(bad.get<TimedExchange>(), InputError) << key;
    bad.erase(key);
    EXPECT_THROW(bad.get<TimedExchange>(), nlohmann::json::exception) << key;
  }
  json["shape"] = "star";
  EXPECT_THROW(json.get<TimedExchange>(), InputError);
}

TEST(ExchangeMs, RefusesWhatIsNoTime) {
  const nlohmann::json good = ExchangeMs{.ms = 0.5, .held = false};
  EXPECT_EQ(good.get<ExchangeMs>().ms, 0.5);
  EXPECT_FALSE(good.get<ExchangeMs>().held);
  for (const double ms : {0.0, -1.0}) {
    EXPECT_THROW((nlohmann::json{{"ms", ms}, {"held", true}}.get<ExchangeMs>()), InputError) << ms;
  }
  for (const nlohmann::json& bad :
       {nlohmann::json{{"ms", nullptr}, {"held", true}}, nlohmann::json{{"ms", 1}}}) {
    EXPECT_THROW(bad.get<ExchangeMs>(), nlohmann::json::exception) << bad;
  }
}

}  // namespace
}  // namespace longca
