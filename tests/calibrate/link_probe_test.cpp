#include "calibrate/link_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "calibrate/rounds.h"
#include "core/error.h"

namespace longca::calibrate {
namespace {

using ::testing::HasSubstr;

std::int64_t largest(const std::vector<TimedExchange>& exchanges) {
  return std::ranges::max(exchanges, {}, &TimedExchange::bytes).bytes;
}

TEST(LinkProbe, SizesAreThoseOfTheDeviceAndItsMemory) {
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  const auto gpu = standard_exchanges("peer", DeviceKind::cuda, 80 * kGib);
  EXPECT_EQ(largest(gpu), kGib);
  EXPECT_EQ(std::ranges::min(gpu, {}, &TimedExchange::bytes).bytes, 1024);
  EXPECT_EQ(largest(standard_exchanges("mpi", DeviceKind::cpu, 80 * kGib)), 64 << 20);
  EXPECT_EQ(largest(standard_exchanges("mpi", DeviceKind::cpu, kGib)), 64 << 20);
  EXPECT_EQ(largest(standard_exchanges("mpi", DeviceKind::cpu, kGib / 64)), 1 << 20);
  EXPECT_EQ(largest(standard_exchanges("mpi", DeviceKind::cpu, 0)), 1024);
  for (const ExchangeShape shape : {ExchangeShape::ring, ExchangeShape::all_to_all}) {
    EXPECT_EQ(std::ranges::count_if(gpu,
                                    [&](const TimedExchange& e) {
                                      return e.shape == shape && e.messages == 1 &&
                                             e.exchanges == 1;
                                    }),
              21)
        << "1 KiB to 1 GiB";
  }
  for (const TimedExchange& exchange : gpu) EXPECT_EQ(exchange.transport, "peer");
}

TEST(LinkProbe, EachRoundHasAnOrderOfItsOwn) {
  const auto all = standard_exchanges("mpi", DeviceKind::cpu, std::int64_t{8} << 30);
  const auto first = order_of_round(all, 0);
  const auto second = order_of_round(all, 1);
  EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(all));
  EXPECT_THAT(second, ::testing::UnorderedElementsAreArray(all));
  EXPECT_NE(first, second);
  EXPECT_NE(first, all);
  EXPECT_EQ(first, order_of_round(all, 0));
}

void expect_near(const LinkFigures& found, const LinkFigures& known, double part) {
  EXPECT_NEAR(found.bytes_per_second / known.bytes_per_second, 1, part);
  EXPECT_NEAR(found.seconds_per_exchange / known.seconds_per_exchange, 1, part);
  EXPECT_NEAR(found.seconds_per_message / known.seconds_per_message, 1, part);
  EXPECT_NEAR(found.seconds_to_begin / known.seconds_to_begin, 1, part);
}

TEST(LinkProbe, TheFitFindsKnownLinks) {
  for (const int ranks : {2, 4, 8}) {
    expect_near(fit_links(test_exchanges("peer", kTestLinks, ranks), ranks), kTestLinks, 1e-9);
  }
}

TEST(LinkProbe, NoiseOfTwoPercentMovesItByLittle) {
  for (const int ranks : {2, 4}) {
    auto times = test_exchanges("peer", kTestLinks, ranks);
    unsigned state = 1;
    for (ExchangeTime& time : times) {
      state = state * 1664525U + 1013904223U;
      time.ms *= 1 + 0.04 * (state / 4294967296.0 - 0.5);
    }
    const LinkFigures found = fit_links(times, ranks);
    EXPECT_NEAR(found.bytes_per_second / kTestLinks.bytes_per_second, 1, 0.01);
    expect_near(found, kTestLinks, 0.1);
  }
}

TEST(LinkProbe, AFigureThatTimesDoNotNeedIsZero) {
  LinkFigures known = kTestLinks;
  known.seconds_per_message = known.seconds_to_begin = 0;
  const LinkFigures found = fit_links(test_exchanges("nccl", known, 2), 2);
  EXPECT_NEAR(found.seconds_per_message, 0, 1e-12);
  EXPECT_NEAR(found.seconds_to_begin, 0, 1e-12);
  EXPECT_NEAR(found.seconds_per_exchange / known.seconds_per_exchange, 1, 1e-6);

  // Single messages alone say nothing of further ones.
  auto single = test_exchanges("peer", kTestLinks, 2);
  std::erase_if(single, [](const ExchangeTime& time) { return time.exchange.messages > 1; });
  EXPECT_EQ(fit_links(single, 2).seconds_per_message, 0);
}

TEST(LinkProbe, WhatIsNoTimeIsRefused) {
  for (const double ms : {std::numeric_limits<double>::quiet_NaN(), -1.0, 0.0,
                          std::numeric_limits<double>::infinity()}) {
    auto times = test_exchanges("peer", kTestLinks, 2);
    times[3].ms = ms;
    try {
      fit_links(times, 2);
      ADD_FAILURE() << ms;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("ring of 8192 bytes over peer took "));
    }
  }
  EXPECT_THROW(fit_links({}, 2), InputError);
}

}  // namespace
}  // namespace longca::calibrate
