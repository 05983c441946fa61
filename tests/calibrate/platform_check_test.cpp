#include "calibrate/platform_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "calibrate/rounds.h"

namespace longca::calibrate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> moved_keys(const cost::Platform& page, const cost::Platform& now,
                                    double min_effect) {
  std::vector<std::string> keys;
  for (const CheckedFigure& figure : check_figures(page, now, min_effect)) {
    if (figure.has_moved()) keys.push_back(figure.key);
  }
  return keys;
}

TEST(PlatformCheck, NothingMovesWhereNothingChanged) {
  const cost::Platform page = test_platform();
  EXPECT_THAT(moved_keys(page, page, 0), IsEmpty());
  EXPECT_EQ(check_figures(page, page, 0).size(), page.spread.size());
}

TEST(PlatformCheck, AFigureMovesBeyondBothSpreads) {
  const cost::Platform page = test_platform();
  cost::Platform now = page;
  const double spread = page.spread.at("memory.bytes_per_second");
  now.memory.bytes_per_second *= 1 + 1.9 * spread;
  EXPECT_THAT(moved_keys(page, now, 0), IsEmpty());
  now.memory.bytes_per_second = page.memory.bytes_per_second * (1 - 2.1 * spread);
  EXPECT_THAT(moved_keys(page, now, 0), ElementsAre("memory.bytes_per_second"));
  EXPECT_THAT(moved_keys(page, now, 0.05), IsEmpty()) << "below the least effect";
}

TEST(PlatformCheck, WhatIsNotResolvedHasNotMoved) {
  const std::string key = "call.forward.seconds_per_call";
  cost::Platform page = test_platform();
  page.spread[key] = 0.01;
  cost::Platform now = page;
  now.call.forward.seconds_per_call *= 100;
  EXPECT_THAT(moved_keys(page, now, 0), ElementsAre(key));
  now.spread[key] = 1;
  EXPECT_THAT(moved_keys(page, now, 0), IsEmpty());
  std::swap(page.spread, now.spread);
  EXPECT_THAT(moved_keys(page, now, 0), IsEmpty());
}

TEST(PlatformCheck, WhatIsNoNumberHasMoved) {
  const cost::Platform page = test_platform();
  cost::Platform now = page;
  now.memory.bytes_per_second = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(moved_keys(page, now, 1), ElementsAre("memory.bytes_per_second"));
}

TEST(PlatformCheck, FiguresOfTheBaseAreNotChecked) {
  const cost::Platform page = test_platform();
  cost::Platform now = page;
  now.links.bytes_per_second *= 2;
  EXPECT_THAT(moved_keys(page, now, 0), IsEmpty());
}

TEST(PlatformCheck, ALinkThatMovedIsNamed) {
  const cost::Platform page = test_platform_of_links();
  EXPECT_THAT(moved_keys(page, page, 0), IsEmpty());
  cost::Platform now = page;
  now.links.bytes_per_second *= 0.9;
  auto& nccl = now.messages.at("nccl.ring").seconds;
  nccl.at(1 << 24) *= 1.1;
  nccl.at(1 << 25) *= 1.2;
  EXPECT_THAT(moved_keys(page, now, 0.03),
              ElementsAre("links.bytes_per_second", "messages.nccl.ring.16777216",
                          "messages.nccl.ring.33554432"));
  EXPECT_TRUE(has_measured_links(page));
  EXPECT_FALSE(has_measured_links(test_platform()));
}

TEST(PlatformCheck, APointOfACurveDoesNotMoveAlone) {
  const cost::Platform page = test_platform_of_links();
  for (const std::int64_t bytes : {1 << 10, 1 << 20, 1 << 30}) {  // both ends, and between them
    cost::Platform now = page;
    now.messages.at("peer.ring").seconds.at(bytes) *= 2;
    EXPECT_THAT(moved_keys(page, now, 0.03), IsEmpty()) << bytes;
  }
  cost::Platform now = page;
  now.messages.at("peer.ring").seconds.at(1 << 20) *= 1.5;
  now.messages.at("peer.ring").seconds.at(1 << 21) *= 0.5;
  EXPECT_THAT(moved_keys(page, now, 0.03), IsEmpty()) << "in opposite directions";
  now = page;
  now.messages.at("peer.all_to_all").seconds.at(1 << 30) *= 2;
  now.messages.at("peer.ring").seconds.at(1 << 10) *= 2;
  EXPECT_THAT(moved_keys(page, now, 0.03), IsEmpty()) << "the end of a curve and another's begin";
  now.messages.at("peer.ring").seconds.at(1 << 11) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(moved_keys(page, now, 0.03),
              ElementsAre("messages.peer.ring.1024", "messages.peer.ring.2048"));
}

TEST(PlatformCheck, KnowsWhichKernelsAPageHas) {
  EXPECT_THAT(measured_kernels(test_platform()), ElementsAre("cudnn"));
  EXPECT_THAT(measured_kernels(cost::default_platform()), IsEmpty());
  cost::Platform page = test_platform();
  page.spread["call.forward.cycles_per_second"] = 0.01;
  EXPECT_THAT(measured_kernels(page), ElementsAre("cudnn", "slice"));
}

}  // namespace
}  // namespace longca::calibrate
