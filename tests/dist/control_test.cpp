#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/ranks/rank_team.h"
#include "core/memory.h"
#include "dist/dist_test.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

RankControl& control() {
  return world().control();
}
int rank() {
  return control().rank();
}
int size() {
  return control().size();
}

TEST(Control, FiguresMeetOnAllRanks) {
  EXPECT_EQ(control().max(rank()), size() - 1);
  EXPECT_EQ(control().max(-rank()), 0);
  EXPECT_EQ(control().sum(rank() + 0.5), size() * (size() - 1) / 2.0 + size() * 0.5);
  EXPECT_EQ(control().broadcast(rank() + 7.25), 7.25);
  std::vector<double> expected;
  for (int i = 0; rank() == 0 && i < size(); ++i) expected.push_back(i * 10);
  EXPECT_EQ(control().gather(rank() * 10.0), expected);
}

TEST(Control, TextsKeepTheirBytesWhateverTheirLength) {
  const auto text_of = [](int from, std::size_t length) {
    std::string text(length, '\0');
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<char>(i * 31 + i / 256 + from);
    return text;
  };
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{3'000'001}}) {
    EXPECT_EQ(control().broadcast(text_of(rank(), length)), text_of(0, length));
    // Lengths of their own, among them none.
    const std::vector<std::string> texts =
        control().gather(text_of(rank(), length * static_cast<std::size_t>(rank())));
    ASSERT_EQ(std::ssize(texts), rank() == 0 ? size() : 0);
    for (int from = 0; from < std::ssize(texts); ++from) {
      EXPECT_EQ(texts[static_cast<std::size_t>(from)],
                text_of(from, length * static_cast<std::size_t>(from)));
    }
  }
}

TEST(Control, BuffersGoFromRankToRankInOrder) {
  std::vector<std::int32_t> values(1'000'003);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i) ^ rank();
  const std::int64_t bytes = std::ssize(values) * 4;
  if (rank() != 0) {
    control().send(0, nullptr, 0);
    control().send(0, values.data(), 40);
    control().send(0, values.data(), bytes);
    return;
  }
  for (int from = size() - 1; from > 0; --from) {
    std::vector<std::int32_t> got(values.size());
    control().receive(from, nullptr, 0);
    control().receive(from, got.data(), 40);
    control().receive(from, got.data(), bytes);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], static_cast<std::int32_t>(i) ^ from) << i;
    }
  }
}

TEST(Control, TheFirstRanksAreAWorldOfTheirOwn) {
  for (const int ranks : {1, 3, size()}) {
    const auto some = world().first(ranks);
    ASSERT_EQ(some != nullptr, rank() < ranks);
    if (!some) continue;
    EXPECT_EQ(some->control().rank(), rank());
    EXPECT_EQ(some->control().size(), ranks);
    EXPECT_EQ(some->control().sum(1), ranks);
    const auto communicator = some->make_communicator();
    EXPECT_EQ(communicator->size(), ranks);
    communicator->barrier(nullptr);
  }
}

/// What together() throws on this rank; ok if nothing.
Status agreed(const std::function<Status()>& step) {
  try {
    together(control(), "plan", step);
    return {};
  } catch (const Refused& refused) {
    return refused.status();
  }
}

TEST(Control, AllHearOfTheFirstRefusal) {
  EXPECT_TRUE(agreed([] { return Status{}; }).ok());
  const Status one = agreed([] {
    return rank() >= 2 ? Status::unsupported("no heads: " + std::to_string(rank())) : Status{};
  });
  EXPECT_EQ(one.code, StatusCode::unsupported);
  EXPECT_EQ(one.reason, "rank 2: no heads: 2");
  const Status all = agreed([] { return Status::unavailable("no kernel: here"); });
  EXPECT_EQ(all.code, StatusCode::unavailable);
  EXPECT_EQ(all.reason, "no kernel: here");
}

TEST(Control, AllHearOfExceptions) {
  const Status crash = agreed([]() -> Status {
    if (rank() == 1) throw std::runtime_error("it broke");
    return {};
  });
  EXPECT_EQ(crash.code, StatusCode::crash);
  EXPECT_EQ(crash.reason, "rank 1: threw in plan: it broke");
  const Status oom = agreed([]() -> Status {
    if (rank() == 3) throw OutOfMemory("17 GiB are too many");
    return {};
  });
  EXPECT_EQ(oom.code, StatusCode::oom);
  EXPECT_THAT(oom.reason, HasSubstr("rank 3: in plan: 17 GiB"));
  const Status number = agreed([]() -> Status { throw 42; });
  EXPECT_EQ(number.code, StatusCode::crash);
}

}  // namespace
}  // namespace longca::testing
