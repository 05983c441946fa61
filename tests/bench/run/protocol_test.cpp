#include "bench/run/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSecret = "5ec2e7";

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

void write_all(int socket, const std::string& text) {
  ASSERT_EQ(::send(socket, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
}

void expect_bad(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    FAIL() << "nothing was thrown";
  } catch (const BadMessage& bad) {
    EXPECT_THAT(bad.what(), HasSubstr(part));
  }
}

/// What the other end of a channel says to such a line.
void expect_bad_line(const std::string& line, const std::string& part,
                     std::size_t max_line = 4096) {
  const Ends ends;
  LineChannel channel(ends.near, kSecret, max_line);
  write_all(ends.far, line);
  ASSERT_TRUE(channel.read_available());
  expect_bad([&] { channel.next(); }, part);
  ::close(ends.far);
}

TEST(LineChannel, JoinsPiecesAndSplitsLines) {
  const Ends ends;
  LineChannel channel(ends.near, kSecret);
  for (const std::string piece : {"5ec2e7 {\"a\"", ":1}\n5ec2e7 {\"b\":2}", "\n5ec2e7 {\"c\""}) {
    write_all(ends.far, piece);
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

TEST(LineChannel, CarriesManyLinesThroughOneBuffer) {
  const Ends ends;
  LineChannel from(ends.near, kSecret);
  LineChannel to(ends.far, kSecret);
  const std::string text(1000, 'x');
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(from.send({{"number", i}, {"text", text}}));
    if (i % 7 != 0) continue;
    ASSERT_TRUE(to.read_available());
    to.next();
  }
  for (int last = -1; last < 1999;) {
    const auto message = to.receive();
    ASSERT_TRUE(message);
    EXPECT_GT(message->at("number"), last);
    last = message->at("number");
  }
}

TEST(LineChannel, CarriesBytesThatAreNoText) {
  const Ends ends;
  LineChannel from(ends.near, kSecret);
  LineChannel to(ends.far, kSecret);
  ASSERT_TRUE(from.send({{"reason", "line\nbreak and \xff"}}));
  EXPECT_EQ(to.receive().value().at("reason"), "line\nbreak and \xEF\xBF\xBD");
}

TEST(LineChannel, RefusesWhatIsNotTheOtherEndsOwn) {
  expect_bad_line("{\"record\":{}}\n", "what is no message");
  expect_bad_line("5ec2e8 {\"record\":{}}\n", "what is no message");
  expect_bad_line(" {\"record\":{}}\n", "what is no message");
  expect_bad_line("5ec2e7 {\"record\":\n", "what is no message");
  expect_bad_line("5ec2e7 [1]\n", "what is no message");
  expect_bad_line("5ec2e7 7\n", "what is no message");
  expect_bad_line("\n", "what is no message");
}

TEST(LineChannel, RefusesWhatIsTooLongOrTooDeep) {
  expect_bad_line("5ec2e7 {\"a\":\"" + std::string(200, 'x') + "\"}\n", "more than 100 bytes", 100);
  expect_bad_line(std::string(200, 'x'), "more than 100 bytes", 100);  // without an end
  expect_bad_line("5ec2e7 {\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}\n",
                  "more than 32 levels");
}

TEST(Secret, IsTakenFromTheEnvironmentOnce) {
  const std::string secret = make_secret();
  EXPECT_EQ(secret.size(), 32U);
  EXPECT_NE(secret, make_secret());
  ::setenv(kSecretVariable, secret.c_str(), 1);
  EXPECT_EQ(take_secret(), secret);
  EXPECT_EQ(::getenv(kSecretVariable), nullptr);
  EXPECT_EQ(take_secret(), "");
}

/// The record that a worker would send for this case.
Record good_record(const Case& c) {
  Record record;
  record.c = c;
  record.metrics = {{"time_ms", 1.0}, {"verified_fraction", 1.0}};
  record.samples_ms = {1.0, 1.0};
  record.stop = "converged";
  return record;
}

TEST(Record, IsThatOfTheCaseAskedFor) {
  Case asked;
  asked.kernel = "naive";
  asked.mask = "causal";
  asked.tokens = 64;
  const CellOptions options;
  const auto judge = [&](const Record& record) {
    return judge_record({{"record", record}}, asked, options);
  };
  EXPECT_EQ(judge(good_record(asked)).metrics.at("time_ms"), 1.0);
  Case other = asked;
  other.kernel = "flash";
  expect_bad([&] { judge(good_record(other)); }, "the record of another case: ");
  for (const char* metric : {"time_ms", "verified_fraction"}) {
    Record without = good_record(asked);
    without.metrics.erase(metric);
    expect_bad([&] { judge(without); }, "a record ");
    without.status = {StatusCode::wrong, "some reason"};
    EXPECT_EQ(judge(without).status.code, StatusCode::wrong);
  }
  Record without_samples = good_record(asked);
  without_samples.samples_ms.clear();
  expect_bad([&] { judge(without_samples); }, "a record without a time");
  expect_bad(
      [&] {
        judge_record({{"record", nlohmann::json::object()}}, asked, options);
      },
      "a record that is none");
  expect_bad([&] { judge_record({{"record", 7}}, asked, options); }, "a record that is none");
  expect_bad([&] { judge_record({{"ends", true}}, asked, options); }, "a record that is none");
}

TEST(Protocol, OptionsSurvive) {
  CellOptions options;
  options.timed = false;
  options.limits.time_limit_s = 0.25;
  options.limits.memory_limit_mib = 77;
  options.own_files.lengths = "/docs.txt";
  options.dump = "some/folder";
  const auto back = nlohmann::json(options).get<CellOptions>();
  EXPECT_FALSE(back.timed);
  EXPECT_EQ(back.limits.time_limit_s, 0.25);
  EXPECT_EQ(back.limits.memory_limit_mib, 77);
  EXPECT_EQ(back.limits.case_limit_s, options.limits.case_limit_s);
  EXPECT_EQ(back.own_files.lengths, "/docs.txt");
  EXPECT_FALSE(back.own_files.mask);
  EXPECT_EQ(back.dump, options.dump);
}

}  // namespace
}  // namespace longca::testing
