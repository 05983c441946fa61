#include "bench/run/protocol.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace longca::testing {
namespace {

struct Ends {
  Ends() {
    std::array<int, 2> sockets{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
    near = sockets[0];
    far = sockets[1];
  }
  int near = -1;
  int far = -1;
};

TEST(LineChannel, JoinsPiecesAndSplitsLines) {
  const Ends ends;
  LineChannel channel(ends.near);
  for (const std::string piece : {"{\"a\"", ":1}\n{\"b\":2}", "\n{\"c\""}) {
    ASSERT_EQ(::send(ends.far, piece.data(), piece.size(), 0), static_cast<ssize_t>(piece.size()));
    ASSERT_TRUE(channel.read_available());
  }
  EXPECT_EQ(channel.next().value(), (nlohmann::json{{"a", 1}}));
  EXPECT_EQ(channel.next().value(), (nlohmann::json{{"b", 2}}));
  EXPECT_FALSE(channel.next());
  EXPECT_TRUE(channel.read_available());  // nothing there, but open
  ::close(ends.far);
  EXPECT_FALSE(channel.read_available());
  EXPECT_FALSE(channel.receive());
  EXPECT_FALSE(channel.send({{"to", "nobody"}}));
}

TEST(LineChannel, CarriesBytesThatAreNoText) {
  const Ends ends;
  LineChannel from(ends.near);
  LineChannel to(ends.far);
  ASSERT_TRUE(from.send({{"reason", "line\nbreak and \xff"}}));
  EXPECT_EQ(to.receive().value().at("reason"), "line\nbreak and \xEF\xBF\xBD");
}

TEST(Protocol, OptionsSurvive) {
  CellOptions options;
  options.timed = false;
  options.limits.time_limit_s = 0.25;
  options.limits.memory_limit_mib = 77;
  options.dump = "some/folder";
  const auto back = nlohmann::json(options).get<CellOptions>();
  EXPECT_FALSE(back.timed);
  EXPECT_EQ(back.limits.time_limit_s, 0.25);
  EXPECT_EQ(back.limits.memory_limit_mib, 77);
  EXPECT_EQ(back.limits.case_limit_s, options.limits.case_limit_s);
  EXPECT_EQ(back.dump, options.dump);
}

}  // namespace
}  // namespace longca::testing
