#include "parallel/transport/rank_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>

#include "support/mail.h"

namespace longca::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class ThreadMessages : public RankMessages {
 public:
  ThreadMessages(Mail& mail, int rank, int size) : mail_(mail), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { FAIL() << "nothing here needs one"; }
  void send(int to, const void* data, std::int64_t bytes) override {
    mail_.send(rank_, to, data, bytes);
  }
  void receive(int from, void* data, std::int64_t bytes) override {
    EXPECT_TRUE(mail_.receive(from, rank_, data, bytes));
  }

 private:
  Mail& mail_;
  int rank_, size_;
};

/// What `body` returns on each rank; and how many messages were sent.
template <typename Result>
std::pair<std::vector<Result>, int> on_ranks(int ranks,
                                             const std::function<Result(RankMessages&)>& body) {
  Mail mail;
  std::vector<Result> results(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadMessages control(mail, rank, ranks);
        results[static_cast<std::size_t>(rank)] = body(control);
      });
    }
  }
  return {results, mail.sent()};
}

/// The reasons that each rank gets of agree(), where ranks answer in turn as `answers` say.
std::vector<std::string> reasons_of(const std::vector<Support>& answers) {
  return on_ranks<std::string>(static_cast<int>(answers.size()),
                               [&](RankMessages& control) {
                                 const Support all = agree(
                                     control, answers[static_cast<std::size_t>(control.rank())]);
                                 return all.ok() ? "ok" : all.reason;
                               })
      .first;
}

TEST(RankExchange, EveryRankHasTheRecordsOfAll) {
  for (const int ranks : {1, 2, 5}) {
    std::vector<int> wanted;
    for (int rank = 0; rank < ranks; ++rank) wanted.push_back(10 * rank);
    const auto [results, messages] = on_ranks<std::vector<int>>(ranks, [](RankMessages& control) {
      return exchange_records(control, 10 * control.rank());
    });
    EXPECT_THAT(results, Each(wanted));
    EXPECT_EQ(messages, ranks * (ranks - 1));
  }
}

TEST(RankExchange, TheFirstRankDecidesForAllWithTwoMessagesForEachOther) {
  for (const int ranks : {1, 2, 7}) {
    const auto [results, messages] = on_ranks<int>(ranks, [](RankMessages& control) {
      return let_first_decide(control, control.rank() + 1, [&](const std::vector<int>& records) {
        EXPECT_EQ(control.rank(), 0);
        int sum = 0;
        for (const int record : records) sum += record;
        return sum;
      });
    });
    EXPECT_THAT(results, Each(ranks * (ranks + 1) / 2));
    EXPECT_EQ(messages, 2 * (ranks - 1));
  }
}

TEST(RankExchange, ARefusalIsNamedOnAllRanks) {
  const Support yes, no{StatusCode::unavailable, "no kernel"}, other{StatusCode::oom, "too large"};
  EXPECT_THAT(reasons_of({yes, yes, yes}), Each("ok"));
  EXPECT_THAT(reasons_of({yes, yes, no}), Each("rank 2: no kernel"));
  EXPECT_THAT(reasons_of({yes, other, no}), Each("rank 1: too large"));
  EXPECT_THAT(reasons_of({no, no, no}), Each("no kernel"));
  EXPECT_THAT(reasons_of({no}), ElementsAre("no kernel"));
}

TEST(RankExchange, ALongReasonIsCutAndStillThatOfAll) {
  const Support no{StatusCode::unavailable, std::string(2000, 'x')};
  EXPECT_THAT(reasons_of({no, no}), Each(std::string(511, 'x')));
}

TEST(RankExchange, ALongReasonIsCutBetweenCharacters) {
  for (const std::string character : {"é", "−", "😀"}) {
    for (std::size_t shift = 0; shift < character.size(); ++shift) {
      std::string reason(shift, 'x');
      while (reason.size() < 1000) reason += character;
      const std::size_t whole = shift + (511 - shift) / character.size() * character.size();
      const Support no{StatusCode::unavailable, reason};
      EXPECT_THAT(reasons_of({no, no}), Each(reason.substr(0, whole))) << shift;
    }
  }
  // No UTF-8: cut anywhere.
  const Support no{StatusCode::unavailable, std::string(2000, '\x80')};
  EXPECT_THAT(reasons_of({no, no}), Each(std::string(511, '\x80')));
}

TEST(RankExchange, AFailureOfOneRankIsThrownOnAll) {
  const auto [thrown, messages] = on_ranks<std::string>(3, [](RankMessages& control) {
    const Support mine = attempt([&] {
      if (control.rank() == 1) throw OutOfMemory("64 GB");
    });
    try {
      throw_together(control, mine);
    } catch (const OutOfMemory& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  });
  EXPECT_THAT(thrown, Each("rank 1: 64 GB"));
}

}  // namespace
}  // namespace longca::testing
