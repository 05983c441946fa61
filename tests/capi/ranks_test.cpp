// Context parallelism of longca.h, with ranks that are threads and messages in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <longca.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capi/handle.h"
#include "support/mail.h"

namespace longca::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr std::int64_t kTokens = 157;
constexpr std::int32_t kHeadsQ = 4;
constexpr std::int32_t kHeadsK = 2;
constexpr std::int32_t kDim = 16;

/// A rank's end of the mail, as a longca_transport.
struct Rank {
  Mail& mail;
  int rank;
  std::map<std::int64_t, std::vector<longca_message>> awaited = {};
  bool fails = false;

  longca_transport transport() { return {this, &start, &finish}; }
  static std::int32_t start(void* self, std::int64_t group, const longca_message* receives,
                            std::size_t receive_count, const longca_message* sends,
                            std::size_t send_count) {
    auto& rank = *static_cast<Rank*>(self);
    if (rank.fails) return 1;
    rank.awaited[group].assign(receives, receives + receive_count);
    for (std::size_t i = 0; i < send_count; ++i) {
      rank.mail.send(rank.rank, sends[i].peer, sends[i].data, sends[i].bytes);
    }
    return 0;
  }
  static std::int32_t finish(void* self, std::int64_t group) {
    auto& rank = *static_cast<Rank*>(self);
    for (const longca_message& message : rank.awaited[group]) {
      if (!rank.mail.receive(message.peer, rank.rank, message.data, message.bytes)) return 1;
    }
    return 0;
  }
};

void on_ranks(int ranks, const auto& body) {
  Mail mail;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Rank end{mail, rank};
      body(end);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

longca_problem small_problem() {
  longca_problem problem = LONGCA_PROBLEM_INIT;
  problem.heads_q = kHeadsQ;
  problem.heads_k = kHeadsK;
  problem.head_dim = kDim;
  return problem;
}

std::vector<float> random_rows(std::int64_t heads, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(kTokens * heads * kDim));
  for (float& value : values) value = normal(random);
  return values;
}

longca_tensor tensor(std::vector<float>& values, std::int64_t heads) {
  const auto tokens = static_cast<std::int64_t>(values.size()) / (heads * kDim);
  return {values.data(), tokens, heads, kDim, heads * kDim, kDim};
}

/// Of a rank's forward call without sinks, whose v is k.
longca_forward_arguments rank_arguments(std::vector<float>& q, std::vector<float>& k,
                                        std::vector<float>& o) {
  return {tensor(q, kHeadsQ),
          tensor(k, kHeadsK),
          tensor(k, kHeadsK),
          tensor(o, kHeadsQ),
          {},
          nullptr,
          nullptr};
}

/// The rows of these tokens.
std::vector<float> rows_of(const std::vector<float>& all, std::int64_t heads,
                           const std::vector<std::int64_t>& ranges) {
  std::vector<float> rows;
  const std::int64_t row = heads * kDim;
  for (std::size_t i = 0; i < ranges.size(); i += 2) {
    rows.insert(rows.end(), all.begin() + ranges[i] * row, all.begin() + ranges[i + 1] * row);
  }
  return rows;
}

struct Owned {
  longca_partition* partition;
  std::vector<std::int64_t> ranges;
};

Owned partition_of(const longca_mask* mask, int rank, int ranks, std::int32_t device) {
  longca_partition_options options = LONGCA_PARTITION_OPTIONS_INIT;
  options.rank = rank;
  options.ranks = ranks;
  options.heads_q = kHeadsQ;
  options.heads_k = kHeadsK;
  options.head_dim = kDim;
  options.device = device;
  Owned owned{nullptr, {}};
  EXPECT_EQ(longca_partition_create(&options, mask, &owned.partition), LONGCA_OK)
      << longca_last_error();
  owned.ranges.resize(2 * longca_partition_ranges(owned.partition, nullptr, 0));
  longca_partition_ranges(owned.partition, owned.ranges.data(), owned.ranges.size() / 2);
  return owned;
}

TEST(RankPlans, AgreeWithTheWholeAttention) {
  const MaskHandle mask = packed_documents({0, 20, 21, 90, kTokens});
  const std::vector<float> q = random_rows(kHeadsQ, 1);
  const std::vector<float> k = random_rows(kHeadsK, 2);
  const std::vector<float> v = random_rows(kHeadsK, 3);
  const longca_problem problem = small_problem();

  std::vector<float> whole_q = q, whole_k = k, whole_v = v;
  std::vector<float> whole(q.size());
  std::vector<float> lse(static_cast<std::size_t>(kHeadsQ * kTokens));
  longca_plan* plan = nullptr;
  ASSERT_EQ(longca_plan_create(&problem, mask.get(), &plan), LONGCA_OK) << longca_last_error();
  const PlanHandle owned_plan = own(plan);
  const longca_forward_arguments arguments{tensor(whole_q, kHeadsQ),
                                           tensor(whole_k, kHeadsK),
                                           tensor(whole_v, kHeadsK),
                                           tensor(whole, kHeadsQ),
                                           {lse.data(), kHeadsQ, kTokens, kTokens},
                                           nullptr,
                                           nullptr};
  ASSERT_EQ(longca_forward(plan, &arguments), LONGCA_OK) << longca_last_error();

  // What ranks compute on weighs their work; any attention runs over such a partition.
  for (const std::int32_t device : {LONGCA_CPU, LONGCA_CUDA}) {
    on_ranks(3, [&](Rank& rank) {
      const auto [partition, ranges] = partition_of(mask.get(), rank.rank, 3, device);
      std::vector<float> own_q = rows_of(q, kHeadsQ, ranges);
      std::vector<float> own_k = rows_of(k, kHeadsK, ranges);
      std::vector<float> own_v = rows_of(v, kHeadsK, ranges);
      std::vector<float> o(own_q.size());
      const longca_transport transport = rank.transport();
      longca_rank_plan* rank_plan = nullptr;
      ASSERT_EQ(longca_rank_plan_create(partition, &problem, &transport, &rank_plan), LONGCA_OK)
          << longca_last_error();
      const longca_forward_arguments own{tensor(own_q, kHeadsQ),
                                         tensor(own_k, kHeadsK),
                                         tensor(own_v, kHeadsK),
                                         tensor(o, kHeadsQ),
                                         {},
                                         nullptr,
                                         nullptr};
      EXPECT_EQ(longca_rank_forward(rank_plan, &own, nullptr), LONGCA_OK) << longca_last_error();
      EXPECT_THAT(o, Pointwise(FloatNear(1e-5F), rows_of(whole, kHeadsQ, ranges)));
      longca_rank_plan_release(rank_plan);
      longca_partition_release(partition);
    });
  }
}

TEST(Partitions, KnowTheTokensOfEveryRank) {
  const MaskHandle mask = packed_documents({0, 20, 21, 90, kTokens});
  const auto [first, ranges] = partition_of(mask.get(), 0, 3, LONGCA_CPU);
  for (int rank = 0; rank < 3; ++rank) {
    const auto [partition, own] = partition_of(mask.get(), rank, 3, LONGCA_CPU);
    std::size_t count = 0;
    EXPECT_EQ(longca_partition_ranges_of(first, rank, nullptr, 0, &count), LONGCA_OK);
    ASSERT_EQ(2 * count, own.size());
    std::vector<std::int64_t> found(own.size() + 2, -1);
    EXPECT_EQ(longca_partition_ranges_of(first, rank, found.data(), count + 1, &count), LONGCA_OK);
    std::vector<std::int64_t> wanted = own;
    wanted.insert(wanted.end(), {-1, -1});
    EXPECT_EQ(found, wanted);
    if (count > 1) {  // no more than there is room for
      std::ranges::fill(found, -1);
      EXPECT_EQ(longca_partition_ranges_of(first, rank, found.data(), 1, &count), LONGCA_OK);
      EXPECT_EQ(2 * count, own.size());
      EXPECT_EQ(found[1], own[1]);
      EXPECT_EQ(found[2], -1);
    }
    longca_partition_release(partition);
  }
  std::size_t count = 0;
  EXPECT_EQ(longca_partition_ranges_of(first, 3, nullptr, 0, &count), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "rank = 3 of 3 ranks: 0 to ranks − 1");
  EXPECT_EQ(longca_partition_ranges_of(first, 0, nullptr, 0, nullptr), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "count is NULL");
  EXPECT_EQ(longca_partition_ranges_of(nullptr, 0, nullptr, 0, &count), LONGCA_INVALID_ARGUMENT);
  longca_partition_release(first);
}

TEST(RankPlans, NameWhatDoesNotFit) {
  const MaskHandle mask = packed_documents({0, kTokens});
  Mail mail;
  Rank rank{mail, 0};
  const longca_transport transport = rank.transport();
  const auto [partition, ranges] = partition_of(mask.get(), 0, 1, LONGCA_CPU);
  longca_problem problem = small_problem();
  problem.device = LONGCA_CUDA;
  longca_rank_plan* plan = nullptr;
  EXPECT_EQ(longca_rank_plan_create(partition, &problem, &transport, &plan),
            LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("longca_rank_plan_create_on_gpus"));
  EXPECT_EQ(longca_rank_plan_create_on_gpus(partition, &problem, nullptr, &plan),
            LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("group is NULL"));
  longca_partition_options options = LONGCA_PARTITION_OPTIONS_INIT;
  options.device = 7;
  longca_partition* refused = nullptr;
  EXPECT_EQ(longca_partition_create(&options, mask.get(), &refused), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("device = 7"));
  options = LONGCA_PARTITION_OPTIONS_INIT;
  options.reserved = 1;
  EXPECT_EQ(longca_partition_create(&options, mask.get(), &refused), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "reserved = 1: 0");
  options = LONGCA_PARTITION_OPTIONS_INIT;
  for (const std::int32_t ranks : {0, 65537}) {
    options.ranks = ranks;
    EXPECT_EQ(longca_partition_create(&options, mask.get(), &refused), LONGCA_INVALID_ARGUMENT);
    EXPECT_EQ(longca_last_error(),
              "ranks = " + std::to_string(ranks) + ": at least 1, at most 65536");
  }
  for (const std::int32_t wrong : {-1, 2}) {
    options.ranks = 2;
    options.rank = wrong;
    EXPECT_EQ(longca_partition_create(&options, mask.get(), &refused), LONGCA_INVALID_ARGUMENT);
    EXPECT_EQ(longca_last_error(),
              "rank = " + std::to_string(wrong) + " of 2 ranks: 0 to ranks − 1");
  }
  longca_gpu_group* group = nullptr;
  EXPECT_EQ(longca_gpu_group_create(0, 65537, &transport, nullptr, &group),
            LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "ranks = 65537: at least 1, at most 65536");
  longca_partition_release(partition);
  longca_rank_plan_release(nullptr);
  longca_gpu_group_release(nullptr);
}

TEST(RankPlans, RefuseAVOfAnotherDimension) {
  const MaskHandle mask = packed_documents({0, kTokens});
  Mail mail;
  Rank rank{mail, 0};
  const longca_transport transport = rank.transport();
  const auto [partition, ranges] = partition_of(mask.get(), 0, 1, LONGCA_CPU);
  longca_problem problem = small_problem();
  problem.head_dim_v = 8;
  longca_rank_plan* plan = nullptr;
  EXPECT_EQ(longca_rank_plan_create(partition, &problem, &transport, &plan), LONGCA_UNSUPPORTED);
  EXPECT_STREQ(longca_last_error(),
               "magi: no scheme of context parallelism takes a v of another dimension than q and "
               "k, so not dim=16:8");
  EXPECT_EQ(plan, nullptr);
  problem.head_dim_v = kDim;
  EXPECT_EQ(longca_rank_plan_create(partition, &problem, &transport, &plan), LONGCA_OK)
      << longca_last_error();
  longca_rank_plan_release(plan);
  longca_partition_release(partition);
}

TEST(RankPlans, RefuseWrittenRowsThatOverlapAndAStateBetweenWords) {
  const MaskHandle mask = packed_documents({0, kTokens});
  Mail mail;
  Rank rank{mail, 0};
  const longca_transport transport = rank.transport();
  const auto [partition, ranges] = partition_of(mask.get(), 0, 1, LONGCA_CPU);
  const longca_problem problem = small_problem();
  longca_rank_plan* plan = nullptr;
  ASSERT_EQ(longca_rank_plan_create(partition, &problem, &transport, &plan), LONGCA_OK);
  std::vector<float> q = random_rows(kHeadsQ, 1), k = random_rows(kHeadsK, 2), o(q.size());
  longca_forward_arguments arguments = rank_arguments(q, k, o);
  arguments.o.token_stride = kDim;
  EXPECT_EQ(longca_rank_forward(plan, &arguments, nullptr), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(),
               "o is written, and with strides (16, 16) its rows of 16 elements overlap");
  std::vector<float> words(4);
  EXPECT_EQ(longca_rank_forward(plan, &arguments, reinterpret_cast<char*>(words.data()) + 2),
            LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("state lies at"));
  longca_rank_plan_release(plan);
  longca_partition_release(partition);
}

TEST(RankPlans, AfterACallThatFailedAmidItsMessagesAllAreRefused) {
  const MaskHandle mask = packed_documents({0, kTokens});
  on_ranks(2, [&](Rank& rank) {
    const auto [partition, ranges] = partition_of(mask.get(), rank.rank, 2, LONGCA_CPU);
    const longca_problem problem = small_problem();
    const longca_transport transport = rank.transport();
    longca_rank_plan* plan = nullptr;
    ASSERT_EQ(longca_rank_plan_create(partition, &problem, &transport, &plan), LONGCA_OK);
    std::vector<float> q = rows_of(random_rows(kHeadsQ, 1), kHeadsQ, ranges);
    std::vector<float> k = rows_of(random_rows(kHeadsK, 2), kHeadsK, ranges);
    std::vector<float> o(q.size());
    longca_forward_arguments arguments = rank_arguments(q, k, o);
    arguments.o.token_stride = kDim;
    EXPECT_EQ(longca_rank_forward(plan, &arguments, nullptr), LONGCA_INVALID_ARGUMENT);
    arguments.o = tensor(o, kHeadsQ);
    EXPECT_EQ(longca_rank_forward(plan, &arguments, nullptr), LONGCA_OK)
        << "a bad argument ends no pass: " << longca_last_error();
    rank.fails = true;
    EXPECT_EQ(longca_rank_forward(plan, &arguments, nullptr), LONGCA_FAILED);
    const std::string why = longca_last_error();
    rank.fails = false;
    EXPECT_EQ(longca_rank_forward(plan, &arguments, nullptr), LONGCA_FAILED);
    EXPECT_THAT(longca_last_error(),
                AllOf(HasSubstr("make another, in Python another Partition, on all ranks"),
                      HasSubstr(why)));
    longca_rank_plan_release(plan);
    longca_partition_release(partition);
  });
}

/// Leaks are the sanitizer's to find.
TEST(RankPlans, WithoutAPlaceForThemNoneAreMade) {
  const MaskHandle mask = packed_documents({0, kTokens});
  longca_partition_options options = LONGCA_PARTITION_OPTIONS_INIT;
  EXPECT_EQ(longca_partition_create(&options, mask.get(), nullptr), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "partition is NULL");
  Mail mail;
  Rank rank{mail, 0};
  const longca_transport transport = rank.transport();
  const auto [partition, ranges] = partition_of(mask.get(), 0, 1, LONGCA_CPU);
  const longca_problem problem = small_problem();
  EXPECT_EQ(longca_rank_plan_create(partition, &problem, &transport, nullptr),
            LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "plan is NULL");
  longca_partition_release(partition);
}

TEST(RankPlans, NoHandleHasNothing) {
  EXPECT_EQ(longca_partition_ranges(nullptr, nullptr, 0), 0);
  EXPECT_EQ(longca_rank_plan_state_bytes(nullptr), 0);
  EXPECT_EQ(longca_gpu_group_transport(nullptr), nullptr);
}

TEST(GpuGroups, NameABadTransportAndBadRanks) {
  Mail mail;
  Rank rank{mail, 0};
  const longca_transport transport = rank.transport();
  longca_gpu_group* group = nullptr;
  EXPECT_EQ(longca_gpu_group_create(0, 1, &transport, "pear", &group), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), AllOf(HasSubstr("pear"), HasSubstr("peer")));
  EXPECT_EQ(longca_gpu_group_create(2, 2, &transport, nullptr, &group), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("rank = 2 of 2"));
  const longca_transport empty{};
  EXPECT_EQ(longca_gpu_group_create(0, 1, &empty, nullptr, &group), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("transport.start is NULL"));
  EXPECT_EQ(group, nullptr);
}

/// More ranks than a machine has GPUs: all of them learn of it, and none waits.
TEST(GpuGroups, AreRefusedOnAllRanksWhereOneHasNoGpuOfItsOwn) {
  constexpr int kRanks = 33;
  on_ranks(kRanks, [&](Rank& rank) {
    const longca_transport transport = rank.transport();
    longca_gpu_group* group = nullptr;
    EXPECT_EQ(longca_gpu_group_create(rank.rank, kRanks, &transport, nullptr, &group),
              LONGCA_UNAVAILABLE);
    EXPECT_THAT(longca_last_error(), AnyOf(HasSubstr("GPU"), HasSubstr("CUDA")));
    EXPECT_EQ(group, nullptr);
  });
}

}  // namespace
}  // namespace longca::testing
