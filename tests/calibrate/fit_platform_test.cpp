#include "calibrate/fit_platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bench/cell/problem.h"
#include "calibrate/rounds.h"
#include "core/error.h"

namespace longca::calibrate {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::StartsWith;

TEST(FitPlatform, NamesOfCards) {
  EXPECT_EQ(platform_name_of("NVIDIA H200"), "h200");
  EXPECT_EQ(platform_name_of("NVIDIA H100 80GB HBM3"), "h100_80gb_hbm3");
  EXPECT_EQ(platform_name_of("NVIDIA A100-SXM4-40GB"), "a100_sxm4_40gb");
  EXPECT_EQ(platform_name_of("Intel(R) Xeon(R) Platinum 8488C CPU @ 2.40GHz"),
            "intel_xeon_platinum_8488c");
  EXPECT_EQ(platform_name_of("../../etc"), "etc");
  EXPECT_EQ(platform_name_of("///"), "platform");
}

TEST(FitPlatform, FiguresAreThoseOfTheMedianRound) {
  const cost::Platform mine = test_platform();
  EXPECT_NEAR(mine.memory.bytes_per_second, 2e12, 1);
  EXPECT_NEAR(mine.memory.seconds_per_copy, 2e-6, 1e-12);
  ASSERT_TRUE(mine.product && mine.launch);
  EXPECT_NEAR(mine.product->burst_flops_per_second, 200e12, 1e3);
  EXPECT_NEAR(mine.product->sustained_flops_per_second, 160e12, 1e3);
  EXPECT_NEAR(mine.launch->seconds_per_kernel, 1.5e-6, 1e-12);
  for (const auto& pass : {mine.rates.at("cudnn").forward, mine.rates.at("cudnn").backward}) {
    ASSERT_TRUE(pass);
    EXPECT_NEAR(pass->flops_per_second, 600e12, 1e6);
    EXPECT_NEAR(pass->keys_per_row, 200, 1e-3);
    EXPECT_NEAR(pass->seconds_per_call, 20e-6, 1e-11);
  }
  EXPECT_NEAR(mine.kernel.any.flops_per_second, 600e12, 1e6);
  EXPECT_EQ(mine.device.sms, 132);
}

TEST(FitPlatform, TheSpreadIsThatOfTheRoundFarthestOff) {
  const cost::Platform mine = test_platform();
  const double slowest = 1 - 1 / 1.02;
  EXPECT_NEAR(mine.spread.at("memory.bytes_per_second"), slowest, 1e-3);
  EXPECT_NEAR(mine.spread.at("memory.seconds_per_copy"), 0.02, 1e-3);
  EXPECT_NEAR(mine.spread.at("rates.cudnn.forward.flops_per_second"), slowest, 1e-3);
  EXPECT_THAT(mine.spread, Not(Contains(Key("device.sms"))));
  EXPECT_THAT(mine.spread, Not(Contains(Key("links.bytes_per_second"))));
}

TEST(FitPlatform, WhatWasNotMeasuredIsTheBasesAndSaysSo) {
  const cost::Platform mine = test_platform();
  const cost::Platform& base = cost::default_platform();
  EXPECT_EQ(mine.links.bytes_per_second, base.links.bytes_per_second);
  EXPECT_EQ(mine.links.measured, "of h200, not measured here: " + base.links.measured);
  EXPECT_EQ(mine.kernel.forward.tile_flops_per_second, base.kernel.forward.tile_flops_per_second);
  EXPECT_THAT(mine.memory.measured,
              StartsWith("longca calibrate, 2026-11-23, 3 rounds: copies of "));
  EXPECT_THAT(mine.memory.measured, Not(HasSubstr("h200")));
}

TEST(FitPlatform, ThePageOfWhatItFitsIsReadBackEqual) {
  for (const cost::Platform& mine :
       {test_platform(), test_platform_of_links(),
        fit_platform(cost::default_platform(), test_cpu(),
                     test_rounds(test_cells("flash", kTestRate)), "cpu")}) {
    EXPECT_EQ(cost::parse_platform(cost::to_toml(mine), "p.toml"), mine) << mine.name;
  }
}

/// Times that slice's own model gives at 0.9 of the base's cycles per second.
std::vector<Record> slice_cells_at(double factor) {
  cost::Platform slower = cost::default_platform();
  slower.call.forward.cycles_per_second *= factor;
  slower.call.backward.cycles_per_second *= factor;
  const simulate::SliceTimes times(slower);
  std::vector<Record> records = test_cells("slice", kTestRate);
  for (Record& record : records) {
    const cost::Pass pass =
        record.c.pass == Pass::forward ? cost::Pass::forward : cost::Pass::backward;
    const double alone = times.seconds(case_mask(record.c).mask, {}, pass);
    record.metrics["time_ms"] = 1e3 * times.slowed(alone, pass);
  }
  return records;
}

TEST(FitPlatform, CallsOfSliceGiveItsCyclesPerSecond) {
  const std::vector<Round> rounds(2, test_round(1, slice_cells_at(0.9)));
  const cost::Platform& base = cost::default_platform();
  const cost::Platform mine = fit_platform(base, test_gpu(), rounds, "mine");
  EXPECT_NEAR(mine.call.forward.cycles_per_second / base.call.forward.cycles_per_second, 0.9, 5e-4);
  EXPECT_NEAR(mine.call.backward.cycles_per_second / base.call.backward.cycles_per_second, 0.9,
              5e-4);
  EXPECT_EQ(mine.call.forward.seconds_per_call, base.call.forward.seconds_per_call);
  EXPECT_THAT(mine.call.forward.measured, HasSubstr("; the rest is of h200: "));
  EXPECT_THAT(mine.spread, Contains(Key("kernel.forward.tile_flops_per_second")));
  EXPECT_THAT(mine.rates, Not(Contains(Key("slice"))));
}

TEST(FitPlatform, OnACpuPlannersWeighByItsKernel) {
  const cost::Platform cpu = fit_platform(cost::default_platform(), test_cpu(),
                                          test_rounds(test_cells("flash", kTestRate)), "cpu");
  EXPECT_EQ(cpu.kind, "cpu");
  EXPECT_EQ(cpu.node.gpus, 2);
  EXPECT_NEAR(cpu.kernel.forward.tile_flops_per_second, 600e12, 1e6);
  EXPECT_NEAR(cpu.kernel.backward.keys_per_row, 200, 1e-3);
}

TEST(FitPlatform, CellsThatAreNotOkHaveNoRate) {
  std::vector<Record> records = test_cells("cudnn", kTestRate);
  for (Record& record : records) record.status = {StatusCode::wrong, "error_o is 1"};
  const cost::Platform mine =
      fit_platform(cost::default_platform(), test_gpu(), test_rounds(records), "mine");
  EXPECT_TRUE(mine.rates.empty());
  EXPECT_EQ(mine.kernel.any, [] {
    cost::CallRates any = cost::default_platform().kernel.any;
    any.measured = "of h200, not measured here: " + any.measured;
    return any;
  }());
}

TEST(FitPlatform, NoFigureIsZero) {
  const auto cells = test_cells("cudnn", {600e12, 0, 0});
  const cost::Platform mine =
      fit_platform(cost::default_platform(), test_gpu(), test_rounds(cells), "mine");
  EXPECT_GE(mine.rates.at("cudnn").forward->keys_per_row, 1);
  EXPECT_GE(mine.rates.at("cudnn").forward->seconds_per_call, 1e-7);
}

TEST(FitPlatform, LinksAreThoseOfThePreferredTransport) {
  const cost::Platform mine = test_platform_of_links();
  EXPECT_NEAR(mine.links.bytes_per_second, 350e9, 1);
  EXPECT_NEAR(mine.links.seconds_per_exchange, 8e-6, 1e-12);
  EXPECT_NEAR(mine.links.seconds_per_message, 5e-6, 1e-12);
  EXPECT_NEAR(mine.links.seconds_to_begin, 20e-6, 1e-12);
  EXPECT_THAT(mine.links.measured, HasSubstr(" exchanges over peer among 2 ranks of one host"));
  EXPECT_THAT(mine.links.measured, Not(HasSubstr("h200")));
  for (const char* key :
       {"bytes_per_second", "seconds_per_exchange", "seconds_per_message", "seconds_to_begin"}) {
    EXPECT_NEAR(mine.spread.at(std::string("links.") + key), 0.02, 1e-3) << key;
  }
}

TEST(FitPlatform, EachPatternHasItsCurve) {
  const cost::Platform mine = test_platform_of_links();
  ASSERT_EQ(mine.messages.size(), 4U);
  for (const char* pattern : {"nccl.ring", "nccl.all_to_all", "peer.ring", "peer.all_to_all"}) {
    const cost::MessageTimes& times = mine.messages.at(pattern);
    EXPECT_EQ(times.seconds.size(), 21U) << pattern;
    EXPECT_NEAR(times.seconds.at(1024), 28e-6, 28e-9) << pattern;
    EXPECT_THAT(times.measured, ::testing::EndsWith("3 rounds: 2 ranks on one host"));
    EXPECT_NEAR(mine.spread.at(std::string("messages.") + pattern + ".1024"), 0.02, 1e-3);
  }
  const double gib = 1024.0 * 1024 * 1024;
  EXPECT_NEAR(mine.messages.at("nccl.ring").seconds.at(1 << 30) / (gib / 175e9), 1, 0.01);
}

TEST(FitPlatform, LaunchesInATimeAreSaid) {
  std::vector<Round> rounds(2, test_round(1, {}));
  for (Round& round : rounds) {
    round.exchanges = test_exchanges("nccl", kTestLinks, 2);
    round.exchanges[0].held = round.exchanges[1].held = false;
  }
  const cost::Platform mine = fit_platform(cost::default_platform(), test_gpu(), rounds, "mine");
  EXPECT_THAT(mine.messages.at("nccl.ring").measured,
              ::testing::EndsWith("; the time of launches is in some of them"));
  EXPECT_THAT(mine.messages.at("nccl.all_to_all").measured, Not(HasSubstr("launches")));
}

TEST(FitPlatform, WhatIsNoTimeOfAnExchangeIsRefused) {
  std::vector<Round> rounds(3, test_round(1, {}));
  for (Round& round : rounds) round.exchanges = test_exchanges("peer", kTestLinks, 2);
  rounds[1].exchanges[7].ms = -1;
  EXPECT_THROW(fit_platform(cost::default_platform(), test_gpu(), rounds, "mine"), InputError);
}

TEST(FitPlatform, OneRoundShowsNoSpread) {
  const std::vector<Round> one = {test_round(1, {})};
  EXPECT_THROW(fit_platform(cost::default_platform(), test_gpu(), one, "mine"), InternalError);
}

}  // namespace
}  // namespace longca::calibrate
