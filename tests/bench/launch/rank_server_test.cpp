// The parent's end of the ranks' sockets, among strangers.

#include "bench/launch/rank_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>

#include "bench/launch/listening_host.h"
#include "core/error.h"
#include "core/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using namespace std::chrono_literals;
using Kind = RankServer::Event::Kind;

constexpr const char* kSecret = "0123456789abcdef";

RankHello hello_of(int rank, int ranks) {
  return {.rank = rank, .ranks = ranks, .pid = 4711, .host = "h", .commit = "c", .suite_hash = "s"};
}

/// A server of a few ranks and what connects to it.
class Server : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  std::unique_ptr<LineChannel> connect(const std::string& secret = kSecret) const {
    return connect_to_parent(server_.address(), secret);
  }
  std::unique_ptr<LineChannel> join(int rank) {
    auto channel = connect();
    EXPECT_TRUE(channel->send({{"hello", hello_of(rank, kRanks)}}));
    const auto event = next();
    EXPECT_EQ(event.kind, Kind::hello);
    EXPECT_EQ(event.rank, rank);
    return channel;
  }
  /// The next event within a few polls; `nothing` if there is none.
  RankServer::Event next() {
    for (int i = 0; i < 20; ++i) {
      if (auto event = server_.wait(20ms); event.kind != Kind::nothing) return event;
    }
    return {};
  }
  static bool is_closed(LineChannel& channel) {
    for (int i = 0; i < 200; ++i) {
      if (!channel.read_available()) return true;
    }
    return false;
  }
  void write_raw(const LineChannel& channel, const std::string& text) {
    ::send(channel.socket(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  void expect_stranger(const std::function<void(LineChannel&)>& speak,
                       const std::string& secret = kSecret) {
    const auto stranger = connect(secret);
    speak(*stranger);
    EXPECT_EQ(next().kind, Kind::nothing);
    EXPECT_TRUE(is_closed(*stranger));
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(server_.has(rank));
  }
  void expect_stranger_hello(const nlohmann::json& hello) {
    SCOPED_TRACE(hello.dump());
    expect_stranger([&](LineChannel& channel) { channel.send({{"hello", hello}}); });
  }

  TempDirectory folder_;
  RankServer server_{folder_.path(), {.ranks = kRanks, .secret = kSecret}};
};

TEST_F(Server, HangsUpOnWhoeverHasNotTheSecret) {
  const nlohmann::json hello{{"hello", hello_of(0, kRanks)}};
  expect_stranger([&](LineChannel& channel) { channel.send(hello); }, "");
  expect_stranger([&](LineChannel& channel) { channel.send(hello); }, "0123456789abcdee");
  expect_stranger([&](LineChannel& channel) { write_raw(channel, hello.dump() + "\n"); });
  expect_stranger([&](LineChannel& channel) { write_raw(channel, "GET / HTTP/1.1\n"); });
  expect_stranger([&](LineChannel& channel) { write_raw(channel, std::string(5000, 'x')); });
  EXPECT_TRUE(server_.hellos().empty());
}

TEST_F(Server, HangsUpOnRanksThatAreNotExpected) {
  for (const std::int64_t rank :
       {std::int64_t{-1}, std::int64_t{kRanks}, std::int64_t{1} << 31, -(std::int64_t{1} << 31),
        std::int64_t{1} << 32, std::int64_t{1} << 62}) {
    nlohmann::json hello = hello_of(0, kRanks);
    hello["rank"] = rank;
    expect_stranger_hello(hello);
  }
  nlohmann::json hello = hello_of(0, kRanks);
  hello["rank"] = 0.5;
  expect_stranger_hello(hello);
  hello["rank"] = nullptr;
  expect_stranger_hello(hello);
  expect_stranger_hello(hello_of(0, kRanks + 1));
  expect_stranger_hello("hello");
  expect_stranger_hello(nlohmann::json::array({hello_of(0, kRanks)}));
  expect_stranger([&](LineChannel& channel) {
    channel.send({{"record", nlohmann::json::object()}});
  });
}

TEST_F(Server, KnowsEachRankOnce) {
  const auto first = join(1);
  const auto second = connect();
  ASSERT_TRUE(second->send({{"hello", hello_of(1, kRanks)}}));
  EXPECT_EQ(next().kind, Kind::nothing);
  EXPECT_TRUE(is_closed(*second));
  ASSERT_TRUE(first->send({{"stage", "forward"}}));
  EXPECT_EQ(next().message.at("stage"), "forward");
}

TEST_F(Server, StrangersWhoHoldConnectionsKeepNoRankOut) {
  std::vector<std::unique_ptr<LineChannel>> strangers;
  for (int i = 0; i < 400; ++i) {
    strangers.push_back(connect());
    if (i % 2 == 0) write_raw(*strangers.back(), "0123456789abcdef {");  // no whole line
    server_.wait(1ms);
  }
  const auto root = join(0);
  const auto last = join(2);
  EXPECT_TRUE(is_closed(*strangers.front()));
  EXPECT_FALSE(is_closed(*strangers.back()));
}

TEST_F(Server, HearsNobodyOnceAllRanksAreThere) {
  const auto early = connect();
  server_.wait(1ms);
  std::vector<std::unique_ptr<LineChannel>> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(join(rank));
  server_.wait(1ms);
  EXPECT_TRUE(is_closed(*early));
  EXPECT_THROW(connect(), InputError);
}

TEST_F(Server, HangsUpOnARankThatSendsWhatItMustNot) {
  const auto rank = join(1);
  write_raw(*rank, "{\"record\":{}}\n");
  const auto event = next();
  EXPECT_EQ(event.kind, Kind::noise);
  EXPECT_EQ(event.rank, 1);
  EXPECT_EQ(event.noise, "what is no message");
  EXPECT_FALSE(server_.has(1));
  server_.wait(1ms);
  EXPECT_TRUE(is_closed(*rank));
}

TEST_F(Server, TellsThatARankIsGoneAfterAllThatItHasSent) {
  {
    const auto rank = join(2);
    ASSERT_TRUE(rank->send({{"stage", "forward"}}));
  }
  EXPECT_EQ(next().kind, Kind::message);
  EXPECT_EQ(next().kind, Kind::gone);
  EXPECT_EQ(next().kind, Kind::nothing);
}

TEST(ListeningHost, IsNoWiderThanTheRanksNeed) {
  const TempDirectory folder;
  EXPECT_EQ(listening_host({}), "");
  write_file(folder / "hosts", "127.0.0.1 slots=4\n");
  const RankStart start{.hostfile = (folder / "hosts").string(), .several_hosts = true};
  EXPECT_EQ(listening_host(start), "127.0.0.1");
  const RankServer server(folder.path(), {.ranks = 1, .secret = kSecret, .host = "127.0.0.1"});
  EXPECT_THAT(server.address(), ::testing::StartsWith("127.0.0.1:"));
  const auto channel = connect_to_parent(server.address(), kSecret);
  EXPECT_TRUE(channel->send({{"hello", hello_of(0, 1)}}));
}

}  // namespace
}  // namespace longca::testing
