// What the verbs say of axes that have no effect.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Arguments = std::vector<std::string>;

/// The dry run of a verb with one small cell and these axes.
ProcessResult dry_run(const std::string& verb, const Arguments& axes) {
  Arguments arguments{verb, "--dry-run", "-a", "tokens=64"};
  for (const std::string& axis : axes) arguments.insert(arguments.end(), {"-a", axis});
  return run_longca(arguments);
}

void expect_note(const ProcessResult& result, const std::string& note) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("longca: " + note + "\n"));
}

TEST(AxisNotices, AnAxisOfOtherMasksIsNamedWithThese) {
  const auto causal = dry_run("bench", {"kernel=flash", "mask=causal", "window=5", "density=0.3",
                                        "lengths=pile", "block_causal=1"});
  expect_note(causal,
              "-a window=5 is used by no cell: it is of sliding_window, sliding_window_causal, "
              "global_sliding_window");
  expect_note(causal,
              "-a density=0.3 is used by no cell: it is of block_sparse, block_sparse_variable");
  EXPECT_THAT(causal.err,
              AllOf(HasSubstr("-a lengths=pile is used by no cell: it is of document, "),
                    HasSubstr("-a block_causal=1 is used by no cell")));
}

TEST(AxisNotices, AnAxisOfSomeCellsIsNotNamed) {
  for (const Arguments& axes : {Arguments{"mask=causal,sliding_window", "window=5"},
                                {"mask=global_sliding_window", "window=auto"},
                                {"mask=causal", "block_causal=0", "deterministic=0", "softcap=0"},
                                {"pass=forward,backward", "deterministic=1"},
                                {"mask=causal", "seed=7", "device=found"}}) {
    Arguments all = axes;
    all.emplace_back("kernel=flash");
    const auto result = dry_run("bench", all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("used by no cell"))) << axes.back();
  }
}

TEST(AxisNotices, DeterminismIsOfBackwardPasses) {
  expect_note(dry_run("bench", {"kernel=flash", "deterministic=1", "pass=forward"}),
              "-a deterministic=1 is used by no cell: it is of backward, step");
}

TEST(AxisNotices, AnAxisOfOtherSchemesIsNamedWithThese) {
  const Arguments cell{"kernel=flash", "device=cpu", "ranks=2", "mask=causal", "heads=4:2"};
  Arguments ring = cell;
  ring.insert(ring.end(), {"scheme=ring_p2p", "factor=3"});
  expect_note(dry_run("cp", ring), "-a factor=3 is used by no cell: it is of usp, loongtrain");
  Arguments both = cell;
  both.insert(both.end(), {"scheme=ring_p2p,usp", "factor=2", "shard=best", "tokens=128"});
  EXPECT_THAT(dry_run("cp", both).err, Not(HasSubstr("used by no cell")));
}

TEST(AxisNotices, AQuietRunSaysNothing) {
  const auto result = run_longca({"bench", "--dry-run", "--quiet", "-a", "kernel=flash", "-a",
                                  "mask=causal", "-a", "window=5", "-a", "tokens=64"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

/// The masks of a suite's file count, and those that its exceptions set.
TEST(AxisNotices, TheCellsAreThoseOfTheSuite) {
  const TempDirectory folder;
  const std::string suite = (folder / "s.toml").string();
  const std::string text =
      "description = \"d\"\n[axes]\nkernel = \"flash\"\nmask = \"causal\"\ntokens = [64, 128]\n";
  write_file(suite, text);
  const Arguments line{"bench", suite, "--dry-run", "-a", "window=5"};
  expect_note(run_longca(line),
              "-a window=5 is used by no cell: it is of sliding_window, sliding_window_causal, "
              "global_sliding_window");
  write_file(suite, text +
                        "[[exceptions]]\nwhen = { tokens = 128 }\n"
                        "set = { mask = \"sliding_window\" }\n");
  EXPECT_THAT(run_longca(line).err, Not(HasSubstr("used by no cell")));
}

TEST(AxisNotices, OneMaskNamesTheOptionsThatItDoesNotUse) {
  const auto causal = run_longca({"mask", "causal", "--tokens", "8", "--window", "4"});
  expect_note(causal,
              "--window 4 is not used by causal: it is of sliding_window, sliding_window_causal, "
              "global_sliding_window");
  EXPECT_EQ(std::ranges::count(causal.err, '\n'), 1) << causal.err;
  EXPECT_EQ(run_longca({"mask", "sliding_window", "--tokens", "8", "--window", "4"}).err, "");
}

TEST(AxisNotices, AFigureThatIsSetTwiceIsNamed) {
  const TempDirectory folder;
  const auto result = run_longca({"simulate",     "--platform",
                                  "h100x8_ib400", "--quiet",
                                  "-a",           "kernel=slice",
                                  "-a",           "mask=causal",
                                  "-a",           "pass=forward",
                                  "-a",           "ranks=2",
                                  "-a",           "scheme=ring_p2p",
                                  "-a",           "tokens_per_rank=512",
                                  "--set",        "nic_gbps=100",
                                  "--set",        "nic_gbps=200",
                                  "--out",        (folder / "s.jsonl").string()});
  expect_note(result, "--set nic_gbps is given 2 times: the last one counts, nic_gbps=200");
  expect_note(result, "the links of h100x8_ib400-set" +
                          result.err.substr(result.err.find("-set") + 4, 8) +
                          " are those of h200: they were not measured on it");
}

}  // namespace
}  // namespace longca::testing
