// `longca simulate` by the times of kernels on one GPU: --rates, and which kernels compute its
// steps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "simulate_verb.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Records of a kernel on one GPU, of which either pass took so long.
void write_rates(const std::string& file, const std::string& kernel, int dim, double forward_ms,
                 const std::string& device = "cuda", const nlohmann::json& env = nullptr) {
  std::ofstream out(file);
  Record record;
  record.c.kernel = kernel;
  record.c.head_dim = dim;
  record.c.tokens = 4096;
  record.c.mask = "causal";
  record.c.device = device;
  record.env = env;
  record.metrics = {{"time_ms", forward_ms}, {"area", 4096.0 * 4097 / 2}};
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    record.c.pass = pass;
    out << to_line(record) << '\n';
  }
}

TEST(Simulate, RatesAreOfThePlatformsDevice) {
  const TempDirectory folder;
  const std::string rates = folder / "rates.jsonl";
  const auto run = [&](const std::string& platform) {
    return simulate({"-a", "scheme=ring_p2p", "-a", "shard=zigzag", "-a", "ranks=2", "--force",
                     "--out", folder / "s.jsonl", "--rates", rates},
                    platform);
  };
  const auto card = [](const char* name) {
    return nlohmann::json{{"gpus", nlohmann::json::array({{{"model", name}, {"driver", "1"}}})}};
  };
  write_rates(rates, "slice", 128, 1, "cuda", card("NVIDIA A100-SXM4-80GB"));
  expect_bad_input(run("h200x8"), rates +
                                      ": its cells are of NVIDIA A100-SXM4-80GB, and the platform "
                                      "h200x8 is of NVIDIA H200");
  write_rates(rates, "slice", 128, 1, "cpu");
  expect_bad_input(run("h200x8"), rates + ": its cells are of cpu, and the platform h200x8 is of ");
  write_rates(rates, "slice", 128, 1, "cuda", card("NVIDIA H200"));
  EXPECT_THAT(run("h200x8").err, Not(HasSubstr("--rates")));
  expect_bad_input(run("h100x8_ib400"), "its cells are of NVIDIA H200, and the platform");
  expect_bad_input(run("h800x8_ib200"), "is of H800, with rates of NVIDIA H100");
  write_rates(rates, "slice", 128, 1, "cuda", card("NVIDIA H800"));
  EXPECT_EQ(run("h800x8_ib200").exit_code, 0) << "what the cluster calls it";
  write_rates(rates, "slice", 128, 1);
  const auto unknown = run("h200x8");
  EXPECT_EQ(unknown.exit_code, 0);
  EXPECT_THAT(unknown.err,
              HasSubstr("longca: --rates: 2 cells taken for the platform h200x8: nothing says "
                        "whether their device is its own\n"));
}

/// Which blocks such a mask keeps, only its device can tell.
TEST(Simulate, CellsWhoseBlocksAreSelectedByScoresAreNoRates) {
  const TempDirectory folder;
  const std::string rates = folder / "rates.jsonl";
  Record record;
  record.c.kernel = "slice";
  record.c.mask = "block_sparse";
  record.c.tokens = 4096;
  record.c.density = 0.5;
  record.c.block = 128;
  record.c.device = "cuda";
  record.metrics = {{"time_ms", 1}, {"area", 4096.0 * 2048}};
  const auto run = [&] {
    std::ofstream(rates) << to_line(record) << '\n';
    return simulate({"-a", "scheme=ring_p2p", "-a", "shard=zigzag", "-a", "ranks=2", "--force",
                     "--out", folder / "s.jsonl", "--rates", rates},
                    "h200x8");
  };
  EXPECT_EQ(run().exit_code, 0);
  record.c.selection = "scores";
  expect_bad_input(run(), "no cell on one GPU");
}

/// The page's figures of slice are of heads of 128 without a softcap.
TEST(Simulate, OtherHeadsTakeTheTimesOfTheirRecords) {
  const TempDirectory folder;
  const std::string out = folder / "s.jsonl";
  const auto run = [&](std::vector<std::string> added) {
    for (const char* word : {"-a", "scheme=ring_p2p", "-a", "shard=zigzag", "-a", "ranks=2", "-a",
                             "tokens_per_rank=2K", "--force", "--out"}) {
      added.emplace_back(word);
    }
    added.push_back(out);
    return simulate(added, "h200x8");
  };
  expect_bad_input(run({"-a", "dim=96"}),
                   "those of slice with dim=96 come from its records on one");
  expect_bad_input(run({"-a", "softcap=30"}),
                   "those of slice with dim=128 and a softcap come from");
  EXPECT_EQ(run({"-a", "sink=1"}).exit_code, 0) << "costs next to nothing";

  const std::string rates = folder / "rates.jsonl";
  const auto time_ms = [&](double measured_ms) {
    write_rates(rates, "slice", 96, measured_ms);
    const auto result = run({"-a", "dim=96", "--rates", rates});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_records(out).records.at(0).metrics.at("compute_ms");
  };
  EXPECT_NEAR(time_ms(200) / time_ms(100), 2, 0.05);
  expect_bad_input(run({"-a", "dim=96", "-a", "softcap=30", "--rates", rates}),
                   "those of slice with dim=96 and a softcap come from");
}

/// Several are estimated at a time, and an unknown one ends them all.
TEST(Simulate, RatesOfSeveralMasksDoNotDependOnThreads) {
  const TempDirectory folder;
  const std::string rates = folder / "rates.jsonl";
  const std::string out = folder / "s.jsonl";
  std::vector<Record> records;
  for (const char* mask : {"causal", "full", "sliding_window", "document", "block_sparse"}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      Record& record = records.emplace_back();
      record.c.kernel = "slice";
      record.c.head_dim = 96;
      record.c.tokens = 4096;
      record.c.mask = mask;
      record.c.pass = pass;
      record.c.device = "cuda";
      if (record.c.mask == "sliding_window") record.c.window = 512;
      if (record.c.mask == "block_sparse") record.c.block = 128;
      if (record.c.mask == "block_sparse") record.c.density = 0.5;
      record.metrics = {{"time_ms", static_cast<double>(records.size())}, {"area", 4096.0 * 1000}};
    }
  }
  const auto run = [&](const char* threads) {
    std::ofstream file(rates);
    for (const Record& record : records) file << to_line(record) << '\n';
    file.close();
    ::setenv("LONGCA_THREADS", threads, 1);
    auto result = simulate(
        {"-a", "scheme=ring_p2p", "-a", "shard=zigzag", "-a", "ranks=2", "-a", "tokens_per_rank=2K",
         "-a", "dim=96", "-a", "pass=step", "--force", "--out", out, "--rates", rates},
        "h200x8");
    ::unsetenv("LONGCA_THREADS");
    return result;
  };
  const auto compute_ms = [&](const char* threads) {
    const auto result = run(threads);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_records(out).records.at(0).metrics.at("compute_ms");
  };
  const double alone = compute_ms("1");
  EXPECT_EQ(compute_ms("4"), alone);
  for (Record& record : records) record.metrics["time_ms"] *= 2;
  EXPECT_NEAR(compute_ms("4") / alone, 2, 0.05);
  records.at(6).c.lengths = "later.txt#00000000";  // of document
  records.at(7).c.lengths = "earlier.txt#00000000";
  for (int i = 0; i < 5; ++i) {
    const auto result = run("4");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("length distribution 'earlier.txt")) << "by their problems";
  }
}

/// The whole mask is one band; half of a rank's rows behind the other half is two.
TEST(Simulate, StepsThatTheKernelCannotComputeAreUnsupported) {
  const TempDirectory folder;
  const std::string out = folder / "s.jsonl";
  const std::string rates = folder / "rates.jsonl";
  write_rates(rates, "cudnn", 128, 10);
  const auto result =
      simulate({"-a", "kernel=cudnn", "--rates", rates, "-a", "scheme=ulysses,magi", "-a",
                "shard=best", "-a", "ranks=4", "-a", "tokens_per_rank=8K", "--out", out},
               "h200x8");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  int magi = 0;
  for (const Record& record : read_records(out).records) {
    if (record.c.scheme != "magi") {
      EXPECT_TRUE(record.status.ok()) << record.status.reason;
      continue;
    }
    ++magi;
    EXPECT_EQ(record.status.code, StatusCode::unsupported);
    EXPECT_THAT(record.status.reason, AllOf(HasSubstr("rank 1: step 1 (8192 × "),
                                            HasSubstr("cuDNN's attention takes one diagonal")));
    EXPECT_FALSE(record.metrics.contains("time_ms"));
  }
  EXPECT_GT(magi, 0);
}

TEST(Simulate, AKernelWithoutGradientsOfPartsHasNoBackwardPass) {
  const TempDirectory folder;
  const std::string out = folder / "s.jsonl";
  const std::string rates = folder / "rates.jsonl";
  write_rates(rates, "flex", 128, 10);
  const auto result = simulate({"-a", "kernel=flex", "--rates", rates, "-a", "scheme=ulysses", "-a",
                                "ranks=4", "-a", "pass=forward,backward", "--out", out},
                               "h200x8");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_TRUE(records[0].status.ok()) << records[0].status.reason;
  EXPECT_EQ(records[1].status.code, StatusCode::unsupported);
  EXPECT_THAT(records[1].status.reason,
              HasSubstr("flex's backward pass goes by its own forward pass, not by the lse"));
}

TEST(Simulate, WhatAFixedOrderCostsIsNotedToBeLeftOut) {
  const TempDirectory folder;
  const std::string out = folder / "s.jsonl";
  const auto result = simulate({"-a", "scheme=ring_p2p", "-a", "shard=best", "-a",
                                "deterministic=0,1", "-a", "pass=forward,backward", "--out", out},
                               "h100x8_ib400");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int noted = 0;
  for (const Record& record : read_records(out).records) {
    EXPECT_EQ(record.notes.contains("deterministic"), record.c.deterministic.has_value());
    if (!record.c.deterministic) continue;
    ++noted;
    EXPECT_EQ(record.notes.at("deterministic"), "a fixed order's cost is not simulated");
  }
  EXPECT_EQ(noted, 1) << "forward passes have none";
}

/// Its time is not simulated, so that advice says less of it than of any order.
TEST(Simulate, AdviceOfAFixedOrderHasAWiderInterval) {
  const auto high_over_time = [](std::vector<std::string> added) {
    std::vector<std::string> arguments{
        "advise", "--platform", "h200x8", "--json",          "-a", "mask=full", "-a", "tokens=16K",
        "-a",     "ranks=4",    "-a",     "scheme=ring_p2p", "-a", "shard=best"};
    arguments.insert(arguments.end(), added.begin(), added.end());
    const auto result = run_longca(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto choice = nlohmann::json::parse(result.out).at("choices").at(0);
    EXPECT_EQ(choice.at("basis"), "simulated");
    return choice.at("high_ms").get<double>() / choice.at("time_ms").get<double>();
  };
  EXPECT_NEAR(high_over_time({}), 1 / (1 - 0.061), 1e-6);
  EXPECT_NEAR(high_over_time({"--deterministic"}), 1 / (1 - 0.236), 1e-6);
  EXPECT_NEAR(high_over_time({"--deterministic", "--pass", "forward"}), 1 / (1 - 0.061), 1e-6);
}

}  // namespace
}  // namespace longca::testing
