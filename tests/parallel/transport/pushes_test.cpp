#include "parallel/transport/pushes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <utility>

namespace longca::test {
namespace {

constexpr std::int64_t kNoLimit = std::int64_t{1} << 30;

/// Bytes of the sender and of its receivers.
struct Memories {
  std::vector<unsigned char> from = std::vector<unsigned char>(4096);
  std::vector<unsigned char> to = std::vector<unsigned char>(4096);

  Push push(int peer, std::int64_t from_at, std::int64_t to_at, std::int64_t bytes) {
    return {{peer, from.data() + from_at, 1, bytes, bytes},
            {peer, to.data() + to_at, 1, bytes, bytes}};
  }
};

std::vector<std::int64_t> rows(const std::vector<Push>& pushes) {
  std::vector<std::int64_t> rows;
  for (const Push& push : pushes) rows.push_back(push.from.rows);
  return rows;
}

using Rows = std::vector<std::int64_t>;

/// K and V of two ranges of tokens, in buffers that are 1000 bytes apart at one end and 600 at the
/// other.
TEST(Pushes, KeysAndValuesLeaveTogether) {
  Memories m;
  const auto joined = join_pushes({m.push(1, 0, 50, 300), m.push(1, 1000, 650, 300),
                                   m.push(1, 400, 350, 100), m.push(1, 1400, 950, 100)},
                                  kNoLimit);
  ASSERT_EQ(rows(joined), (Rows{2, 2}));
  EXPECT_EQ(joined[0].from.data, m.from.data());
  EXPECT_EQ(joined[0].from.row_bytes, 300);
  EXPECT_EQ(joined[0].from.stride_bytes, 1000);
  EXPECT_EQ(joined[0].to.row_bytes, 300);
  EXPECT_EQ(joined[0].to.stride_bytes, 600);
  EXPECT_EQ(joined[1].to.data, m.to.data() + 350);
}

TEST(Pushes, StayAloneWhereACopyEngineCannotJoinThem) {
  Memories m;
  const Push first = m.push(1, 500, 500, 100);
  const auto alone = [&](const Push& second, std::int64_t most_stride = kNoLimit) {
    return rows(join_pushes({first, second}, most_stride)) == Rows{1, 1};
  };
  EXPECT_FALSE(alone(m.push(1, 700, 600, 100)));
  EXPECT_TRUE(alone(m.push(2, 700, 600, 100))) << "another peer";
  EXPECT_TRUE(alone(m.push(1, 700, 600, 99))) << "other bytes";
  EXPECT_TRUE(alone(m.push(1, 300, 600, 100))) << "lies before it";
  EXPECT_TRUE(alone(m.push(1, 700, 300, 100))) << "lands before it";
  EXPECT_TRUE(alone(m.push(1, 550, 600, 100))) << "reads some of the same bytes";
  EXPECT_TRUE(alone(m.push(1, 700, 600, 100), 199)) << "too far apart";
  EXPECT_FALSE(alone(m.push(1, 700, 600, 100), 200));
}

TEST(Pushes, AreJoinedWhereAllAreAsFarApart) {
  Memories m;
  EXPECT_EQ(rows(join_pushes({m.push(1, 0, 0, 10), m.push(1, 20, 30, 10), m.push(1, 40, 60, 10),
                              m.push(1, 61, 90, 10)},
                             kNoLimit)),
            (Rows{3, 1}));
}

/// Rows with gaps stay a push of their own, and nothing is joined across them.
TEST(Pushes, WithGapsStayAsTheyAre) {
  Memories m;
  Push gaps = m.push(1, 0, 0, 10);
  gaps.from.rows = gaps.to.rows = 3;
  gaps.from.stride_bytes = 16;
  const auto joined =
      join_pushes({m.push(1, 100, 100, 30), gaps, m.push(1, 200, 200, 30)}, kNoLimit);
  ASSERT_EQ(rows(joined), (Rows{1, 3, 1}));
  EXPECT_EQ(joined[1].from.stride_bytes, 16);
  Push rows_without = m.push(1, 0, 0, 10);
  rows_without.from.rows = rows_without.to.rows = 3;
  EXPECT_EQ(rows(join_pushes({rows_without, m.push(1, 50, 70, 30)}, kNoLimit)), Rows{2});
}

void write(const Push& push) {
  for (std::int64_t row = 0; row < push.from.rows; ++row) {
    std::memcpy(static_cast<unsigned char*>(push.to.data) + row * push.to.stride_bytes,
                static_cast<unsigned char*>(push.from.data) + row * push.from.stride_bytes,
                static_cast<std::size_t>(push.from.row_bytes));
  }
}

/// Whatever is joined, the same bytes land.
TEST(Pushes, MoveTheSameBytes) {
  std::mt19937 random(3);
  const auto draw = [&](int most) { return static_cast<std::int64_t>(random() % (most + 1)); };
  std::size_t apart = 0, together = 0;
  for (int round = 0; round < 500; ++round) {
    Memories m;
    for (auto& byte : m.from) byte = static_cast<unsigned char>(1 + random() % 255);
    std::vector<Push> pushes;
    std::int64_t end = 0;
    for (int i = 0; i < 8; ++i) {
      Push push = m.push(static_cast<int>(draw(1)), 64 * draw(30), end, 64);
      if (draw(3) == 0) {  // rows, perhaps with gaps
        push.from.rows = push.to.rows = 4;
        push.from.row_bytes = push.to.row_bytes = 16;
        push.from.stride_bytes = 16 + 16 * draw(1);
        push.to.stride_bytes = 16 + 16 * draw(1);
      }
      end += 128 + 64 * draw(2);
      pushes.push_back(push);
    }
    for (const Push& push : pushes) write(push);
    const std::vector<unsigned char> expected = std::exchange(m.to, std::vector<unsigned char>());
    std::vector<unsigned char> landed(expected.size());
    std::vector<Push> joined = join_pushes(pushes, 1000);
    for (Push& push : joined) {  // the vector moved: land at the same places of the new one
      push.to.data = landed.data() + (static_cast<unsigned char*>(push.to.data) - expected.data());
      write(push);
    }
    ASSERT_EQ(landed, expected);
    apart += pushes.size();
    together += joined.size();
  }
  EXPECT_LT(together, apart);
}

}  // namespace
}  // namespace longca::test
