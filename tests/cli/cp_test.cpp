#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_directory.h"

// `longca cp` as far as no rank is started: in builds without MPI too.
namespace longca::testing {
namespace {

using Arguments = std::vector<std::string>;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSuite = "cp_quick";

Arguments cp(Arguments more) {
  more.insert(more.begin(), {"cp", kSuite});
  return more;
}

/// Exit 2 at once, one sentence on stderr that contains `part`, nothing on stdout.
void expect_refused(const Arguments& arguments, const std::string& part) {
  const auto result = run_longca(arguments, {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}});
  EXPECT_EQ(result.exit_code, 2) << part;
  EXPECT_EQ(result.out, "") << part;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("longca: " + part));
}

TEST(Cp, RefusesWhatNoRankCouldRun) {
  expect_refused(cp({"-a", "ranks=0"}), "ranks 0 is too small: the minimum is 1");
  expect_refused(cp({"-a", "ranks=two"}),
                 "unknown ranks 'two': a whole number (such as 4096 or 4K) or 'found'");
  expect_refused(cp({"-a", "scheme=ulises"}), "unknown scheme 'ulises' (did you mean 'ulysses'?)");
  expect_refused(cp({"-a", "shard=zigzg"}), "unknown shard 'zigzg' (did you mean 'zigzag'?)");
  expect_refused(cp({"-a", "transport=tcp"}), "unknown transport 'tcp'");
  expect_refused(cp({"-a", "transport=nccl"}),
                 "the transport nccl does not carry messages between CPUs: there it is mpi");
  expect_refused(cp({"-a", "scheme=usp", "-a", "factor=3"}),
                 "the factor 3 does not divide 4 ranks");
  expect_refused(cp({"-a", "tokens=1K", "-a", "tokens_per_rank=1K"}),
                 "tokens and tokens_per_rank say the same thing: give one of them");
  expect_refused(cp({"-a", "ranks=1M", "-a", "tokens_per_rank=1M"}),
                 "1048576 ranks of 1048576 tokens are");
  expect_refused(cp({"--launcher", "mpirum"}),
                 "unknown launcher 'mpirum' (did you mean 'mpirun'?)");
  expect_refused(cp({"--launcher", "none"}), "--launcher none: this process is not one of several");
  expect_refused(cp({"--hostfile", "/no/such/file"}), "cannot read /no/such/file: No such file");
  expect_refused(cp({"--hostfile", "/dev/zero"}), "hostfile '/dev/zero' is no regular file");
  expect_refused({"cp", "cp_quik"}, "unknown suite 'cp_quik' (did you mean 'cp_quick'?)");
}

TEST(Cp, AloneTakesAxesOfRanks) {
  expect_refused(
      {"bench", "-a", "ranks=2"},
      "the axis 'ranks' is of cells over ranks, which bench does not run: use longca cp");
  expect_refused({"check", "-a", "scheme=all"}, "the axis 'scheme' is of cells over ranks");
  expect_refused({"bench", "-a", "tokens_per_rank=1K"}, "the axis 'tokens_per_rank'");
  expect_refused({"bench", kSuite}, "the axis '");
}

TEST(Cp, DryRunListsCellsAndWhyASchemeWillNotRun) {
  const auto result =
      run_longca(cp({"--dry-run", "-a", "scheme=ulysses,ring_p2p", "-a", "ranks=3", "-a",
                     "mask=full", "-a", "pass=forward", "-a", "shard=zigzag"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("scheme=ring_p2p ranks=3 shard=zigzag transport=mpi\n"));
  EXPECT_THAT(result.out,
              HasSubstr("scheme=ulysses ranks=3 shard=zigzag transport=mpi  unsupported: "));
}

TEST(Cp, ExplainsPlansWithoutMpi) {
  const ProcessOptions alone{.environment = {{"PATH", "/nowhere"}}};
  const auto result = run_longca(cp({"--explain", "-a", "scheme=ring_p2p", "-a", "shard=contiguous",
                                     "-a", "mask=causal", "-a", "ranks=3", "-a", "tokens=90"}),
                                 alone);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("ring_p2p over 3 ranks, contiguous: causal, 90 tokens"));
  for (const char* rank : {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}) {
    EXPECT_THAT(result.out, HasSubstr(rank));
  }
  EXPECT_THAT(result.out, HasSubstr("step 0: "));
  const std::string announced = "longca: 1 plan of 3 ranks in all: about ";
  ASSERT_THAT(result.err, ::testing::StartsWith(announced));
  const int lines = static_cast<int>(std::ranges::count(result.out, '\n'));
  EXPECT_NEAR(std::stoi(result.err.substr(announced.size())), lines, 2);
  const auto none = run_longca(cp({"--explain", "-a", "scheme=ulysses", "-a", "ranks=3"}), alone);
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_THAT(none.out, HasSubstr("unsupported: "));
}

/// The plans on the screen, and the factors, are those that the ranks will have.
TEST(Cp, PlansForTheNodesThatTheRanksWillSee) {
  const auto shown = [](const Arguments& arguments, const std::string& ranks_per_node) {
    const auto result = run_longca(
        arguments,
        {.environment = {{"LONGCA_RANKS_PER_NODE", ranks_per_node}, {"CUDA_VISIBLE_DEVICES", ""}}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const Arguments plan = cp({"--explain", "-a", "scheme=magi", "-a", "shard=best", "-a",
                             "mask=causal", "-a", "pass=forward", "-a", "ranks=4"});
  EXPECT_THAT(shown(plan, ""), Not(HasSubstr("nodes of")));
  EXPECT_THAT(shown(plan, "2"), HasSubstr("keys cross into nodes of 2 ranks once"));
  const Arguments cells{"cp", "--dry-run",   "-a", "scheme=usp",   "-a", "heads=16:16",
                        "-a", "mask=causal", "-a", "pass=forward", "-a", "ranks=16",
                        "-a", "device=cpu",  "-a", "tokens=1K"};
  EXPECT_THAT(shown(cells, ""), HasSubstr("factor=16")) << "one host is one node";
  EXPECT_THAT(shown(cells, "4"), HasSubstr("factor=4 "));
  const auto none = run_longca(plan, {.environment = {{"LONGCA_RANKS_PER_NODE", "0"}}});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("LONGCA_RANKS_PER_NODE is 0: at least 1, at most 65536"));
}

TEST(Cp, ExplainsNoMoreThanAnybodyReads) {
  expect_refused(
      cp({"--explain", "-a", "scheme=ring_p2p", "-a", "shard=contiguous", "-a", "mask=causal", "-a",
          "ranks=2K", "-a", "tokens=64K"}),
      "--explain: too much to print: 1 plan of 2048 ranks in all, more than 1000000 lines");
}

TEST(Cp, DrawsOnePlan) {
  expect_refused(cp({"--plot", "/tmp/never.png"}), "--plot draws one plan, and these cells have");
  expect_refused(
      cp({"--plot", "never.gif", "-a", "scheme=magi", "-a", "shard=best", "-a", "mask=full"}), "");
}

/// One cell, of a device that this process does not see.
Arguments cell_without_gpu(const std::string& out) {
  return cp({"-a", "device=cuda", "-a", "scheme=magi", "-a", "ranks=2", "-a", "shard=best", "-a",
             "mask=causal", "-a", "pass=forward", "--out", out});
}

TEST(Cp, ACellWithoutAGpuIsUnavailableAsInBench) {
  const TempDirectory folder;
  const ProcessOptions no_gpu{.environment = {{"CUDA_VISIBLE_DEVICES", ""}}};
  const auto over_ranks = run_longca(cell_without_gpu((folder / "cp.jsonl").string()), no_gpu);
  EXPECT_EQ(over_ranks.exit_code, 0) << over_ranks.err;
  EXPECT_THAT(over_ranks.out, HasSubstr("1 cell: 1 unavailable"));
  const auto alone =
      run_longca({"bench", "-a", "device=cuda", "-a", "kernel=slice", "-a", "mask=causal", "-a",
                  "pass=forward", "--out", (folder / "bench.jsonl").string()},
                 no_gpu);
  EXPECT_EQ(alone.exit_code, over_ranks.exit_code);
  EXPECT_THAT(alone.out, HasSubstr("1 cell: 1 unavailable"));
}

TEST(Cp, SaysThatADoneCellIsNotTraced) {
  const TempDirectory folder;
  const ProcessOptions no_gpu{.environment = {{"CUDA_VISIBLE_DEVICES", ""}}};
  const std::string out = (folder / "cp.jsonl").string();
  const std::string trace = (folder / "trace.json").string();
  Arguments arguments = cell_without_gpu(out);
  ASSERT_EQ(run_longca(arguments, no_gpu).exit_code, 0);
  arguments.insert(arguments.end(), {"--resume", "--trace", trace});
  const auto resumed = run_longca(arguments, no_gpu);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_FALSE(std::filesystem::exists(trace));
  EXPECT_THAT(resumed.err,
              HasSubstr("longca: --trace: " + trace + " is not written, since nothing ran: " + out +
                        " has the cell"));
  EXPECT_THAT(resumed.err, HasSubstr("scheme=magi"));
}

TEST(Cp, ResumeAndOutAreThoseOfBench) {
  const TempDirectory folder;
  write_file(folder / "notes.txt", "no records\n");
  expect_refused(cp({"--out", (folder / "notes.txt").string(), "-a", "mask=full"}),
                 (folder / "notes.txt").string() + " holds other things than records");
}

}  // namespace
}  // namespace longca::testing
