#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/memory.h"
#include "dist/dist_test.h"

namespace longca::testing {
namespace {

constexpr unsigned char kPoison = 0xa5;

/// One message, as all ranks know it.
struct Planned {
  int from = 0, to = 0;
  int group = 0;
  std::int64_t rows = 0, row_bytes = 0;
  std::int64_t send_stride = 0, receive_stride = 0;
  std::int64_t send_offset = 0, receive_offset = 0;  ///< in the rank's memory

  std::int64_t send_span() const { return (rows - 1) * send_stride + row_bytes; }
  std::int64_t receive_span() const { return (rows - 1) * receive_stride + row_bytes; }
};

unsigned char content(int from, std::int64_t offset, int pass) {
  const auto x = static_cast<std::uint64_t>(offset) * 0x9e3779b97f4a7c15U +
                 static_cast<std::uint64_t>(from * 7 + pass);
  return static_cast<unsigned char>(x >> 56);
}

/// Draws the same messages on every rank: sizes from 1 byte to 1 MiB, rows with and without gaps.
class RandomMessages {
 public:
  RandomMessages(unsigned seed, int ranks, int groups) : random_(seed), sent_(ranks), got_(ranks) {
    for (int group = 0; group < groups; ++group) {
      const int count = draw(0, 12);
      for (int i = 0; i < count; ++i) add(group, ranks);
    }
  }

  const std::vector<Planned>& all() const { return messages_; }
  std::int64_t sent_bytes(int rank) const { return sent_[static_cast<std::size_t>(rank)]; }
  std::int64_t received_bytes(int rank) const { return got_[static_cast<std::size_t>(rank)]; }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void add(int group, int ranks) {
    Planned m;
    m.group = group;
    m.from = draw(0, ranks - 1);
    m.to = (m.from + draw(1, ranks - 1)) % ranks;
    const int bits = draw(0, 20);
    const std::int64_t bytes = draw(1, 1 << bits);
    m.rows = std::int64_t{1} << draw(0, bits);
    m.row_bytes = std::max<std::int64_t>(1, bytes / m.rows);
    m.send_stride = m.row_bytes + (draw(0, 1) == 0 ? 0 : draw(1, 100));
    m.receive_stride = m.row_bytes + (draw(0, 1) == 0 ? 0 : draw(1, 100));
    m.send_offset = place(sent_[static_cast<std::size_t>(m.from)], m.send_span());
    m.receive_offset = place(got_[static_cast<std::size_t>(m.to)], m.receive_span());
    messages_.push_back(m);
  }

  std::int64_t place(std::int64_t& end, std::int64_t span) {
    const std::int64_t offset = end + draw(0, 3);
    end = offset + span;
    return offset;
  }

  std::mt19937 random_;
  std::vector<Planned> messages_;
  std::vector<std::int64_t> sent_, got_;
};

std::vector<int> prepare(Communicator& communicator, const RandomMessages& messages, int groups,
                         unsigned char* sent, unsigned char* received) {
  std::vector<int> prepared;
  for (int group = 0; group < groups; ++group) {
    TransferGroup transfers;
    transfers.pattern = static_cast<Pattern>(group % 6);
    for (const Planned& m : messages.all()) {
      if (m.group != group) continue;
      if (m.from == communicator.rank()) {
        transfers.sends.push_back({m.to, sent + m.send_offset, m.rows, m.row_bytes, m.send_stride});
      }
      if (m.to == communicator.rank()) {
        transfers.receives.push_back(
            {m.from, received + m.receive_offset, m.rows, m.row_bytes, m.receive_stride});
      }
    }
    prepared.push_back(communicator.prepare(transfers));
  }
  return prepared;
}

/// What the receiving memory must hold: the messages, and poison everywhere else.
std::vector<unsigned char> expected_at(int rank, const RandomMessages& messages, int pass) {
  std::vector<unsigned char> expected(static_cast<std::size_t>(messages.received_bytes(rank)),
                                      kPoison);
  for (const Planned& m : messages.all()) {
    if (m.to != rank) continue;
    for (std::int64_t row = 0; row < m.rows; ++row) {
      for (std::int64_t i = 0; i < m.row_bytes; ++i) {
        expected[static_cast<std::size_t>(m.receive_offset + row * m.receive_stride + i)] =
            content(m.from, m.send_offset + row * m.send_stride + i, pass);
      }
    }
  }
  return expected;
}

TEST(Communicator, MovesRandomGroupsAsOftenAsAsked) {
  constexpr int kGroups = 6;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const auto communicator = world().make_communicator();
    const int rank = communicator->rank();
    const RandomMessages messages(seed, communicator->size(), kGroups);
    const std::int64_t sent_bytes = messages.sent_bytes(rank);
    const std::int64_t received_bytes = messages.received_bytes(rank);
    auto* sent = static_cast<unsigned char*>(communicator->allocate(sent_bytes));
    auto* received = static_cast<unsigned char*>(communicator->allocate(received_bytes));
    const std::vector<int> groups = prepare(*communicator, messages, kGroups, sent, received);
    std::int64_t bytes_of_pass = 0;
    for (const Planned& m : messages.all())
      bytes_of_pass += m.from == rank ? m.rows * m.row_bytes : 0;
    for (int pass = 0; pass < 3; ++pass) {
      for (std::int64_t i = 0; i < sent_bytes; ++i) sent[i] = content(rank, i, pass);
      std::memset(received, kPoison, static_cast<std::size_t>(received_bytes));
      communicator->reset_bytes_sent();
      communicator->barrier(nullptr);
      // All at once, one after the other, or two at a time.
      const std::size_t ahead = std::array<std::size_t, 3>{kGroups, 1, 2}[pass];
      for (std::size_t i = 0; i < kGroups + ahead; ++i) {
        if (i >= ahead) communicator->finish(groups[i - ahead]);
        if (i < kGroups) communicator->start(groups[i], nullptr);
        communicator->progress();
      }
      const std::vector<unsigned char> got(received, received + received_bytes);
      EXPECT_TRUE(got == expected_at(rank, messages, pass)) << "seed " << seed << " pass " << pass;
      EXPECT_EQ(communicator->bytes_sent(), bytes_of_pass);
      communicator->barrier(nullptr);  // before anybody writes into what others may still send
    }
  }
}

TEST(Communicator, MessagesOfTwoCommunicatorsDoNotMeet) {
  const auto a = world().make_communicator();
  const auto b = world().make_communicator();
  const int next = (a->rank() + 1) % a->size();
  const int previous = (a->rank() + a->size() - 1) % a->size();
  struct Pair {
    std::int64_t sent, received;
  };
  const auto ring = [&](Communicator& c, std::int64_t value) {
    auto* pair = static_cast<Pair*>(c.allocate(sizeof(Pair)));
    pair->sent = value;
    TransferGroup group;
    group.sends.push_back({next, &pair->sent, 1, 8, 8});
    group.receives.push_back({previous, &pair->received, 1, 8, 8});
    return std::pair(pair, c.prepare(group));
  };
  const auto [of_a, group_a] = ring(*a, 100 + a->rank());
  const auto [of_b, group_b] = ring(*b, 200 + a->rank());
  // Ranks start them in different orders.
  const bool a_first = a->rank() % 2 == 0;
  (a_first ? *a : *b).start(a_first ? group_a : group_b, nullptr);
  (a_first ? *b : *a).start(a_first ? group_b : group_a, nullptr);
  a->finish(group_a);
  b->finish(group_b);
  EXPECT_EQ(of_a->received, 100 + previous);
  EXPECT_EQ(of_b->received, 200 + previous);
}

TEST(Communicator, MemoryIsZeroedAlignedAndCounted) {
  MemoryTracker& memory = Device::get(DeviceKind::cpu).memory();
  const std::int64_t before = memory.bytes_in_use();
  {
    const auto communicator = world().make_communicator();
    const std::int64_t bytes = 10'000 + communicator->rank();
    const auto* data = static_cast<const unsigned char*>(communicator->allocate(bytes));
    communicator->allocate(0);
    EXPECT_EQ(memory.bytes_in_use() - before, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0U);
    EXPECT_TRUE(std::all_of(data, data + bytes, [](unsigned char byte) { return byte == 0; }));
  }
  EXPECT_EQ(memory.bytes_in_use(), before);
}

TEST(Communicator, MessagesBeyondWhatAnIntCountsAreDescribed) {
  const auto communicator = world().make_communicator();
  std::int64_t value = 0;  // never read: the group is not started
  TransferGroup group;
  const int peer = (communicator->rank() + 1) % communicator->size();
  const std::int64_t huge = (std::int64_t{5} << 30) + 3;
  group.sends.push_back({peer, &value, 1, huge, huge});
  group.receives.push_back({peer, &value, 3, huge, huge + 1});
  EXPECT_NO_THROW(communicator->prepare(group));
}

TEST(Communicator, TheBarrierLetsNobodyPassBeforeAllAreThere) {
  const auto communicator = world().make_communicator();
  RankControl& control = world().control();
  // A counter that all ranks of this host share.
  std::string path = "/tmp/longca_barrier_" + std::to_string(::getpid());
  path = control.broadcast(path);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::ftruncate(file, 64), 0);
  void* page = ::mmap(nullptr, 64, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto& there = *static_cast<std::atomic<int>*>(page);
  control.barrier();
  for (int round = 1; round <= 200; ++round) {
    there.fetch_add(1);
    communicator->barrier(nullptr);
    EXPECT_GE(there.load(), round * communicator->size());
    communicator->barrier(nullptr);
  }
  ::munmap(page, 64);
  ::close(file);
  control.barrier();
  if (control.rank() == 0) ::unlink(path.c_str());
}

TEST(Communicator, SaysWhatItIs) {
  const auto communicator = world().make_communicator();
  EXPECT_EQ(communicator->name(), "mpi");
  EXPECT_THAT(communicator->version(), ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(communicator->version(), ::testing::Not(::testing::HasSubstr(",")));
}

}  // namespace
}  // namespace longca::testing
