// A rank that fails on its GPU while the other one waits for it, over either transport: it is
// named, costs its cell, leaves no process, and the run goes on. Needs two GPUs.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "bench/launch/rank_machine.h"
#include "bench/record/record.h"
#include "bench/running.h"
#include "gpu/gpu_test.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RankFaults : public GpuTest, public ::testing::WithParamInterface<std::string> {
 protected:
  /// Its path is on the command line of every rank of this test and of no other process.
  RankFaults() : plugin_(folder_ / "rank_faults.so") {
    // It lies beside this binary, also where both were carried to another machine.
    const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    fs::copy_file(here / "rank_fault_plugin_cuda.so", plugin_);
  }

  std::vector<Record> run(const std::string& kernels) const {
    const auto out = folder_ / "faults.jsonl";
    ProcessOptions options;
    options.timeout_s = 280;
    const auto result = run_longca({"cp",           "cp_quick",
                                    "--plugin",     plugin_.string(),
                                    "--out",        out.string(),
                                    "--time-limit", "0.01",
                                    "--case-limit", "12",
                                    "-a",           "device=cuda",
                                    "-a",           "mask=causal",
                                    "-a",           "tokens=512",
                                    "-a",           "heads=8:4",
                                    "-a",           "dim=128",
                                    "-a",           "scheme=ring_p2p",
                                    "-a",           "shard=zigzag",
                                    "-a",           "ranks=2",
                                    "-a",           "pass=forward",
                                    "-a",           "transport=" + GetParam(),
                                    "-a",           "kernel=" + kernels},
                                   options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_records(out).records;
  }

  TempDirectory folder_;
  fs::path plugin_;
};

TEST_P(RankFaults, CostsItsCellAndNamesTheRank) {
  if (rank_machine().gpus < 2) GTEST_SKIP() << "there are " << rank_machine().gpus << " GPUs";
  const auto records =
      run("rank_none,rank_killed,naive,rank_killed_later,rank_hangs,rank_writes_anywhere");
  const auto expect = [&](const std::string& kernel, StatusCode code, const auto& reason) {
    const auto found =
        std::ranges::find_if(records, [&](const Record& r) { return r.c.kernel == kernel; });
    ASSERT_NE(found, records.end()) << kernel;
    EXPECT_EQ(to_string(found->status.code), to_string(code))
        << kernel << ": " << found->status.reason;
    EXPECT_THAT(found->status.reason, reason) << kernel;
  };
  const auto killed = AllOf(HasSubstr("in forward rank 1 "), HasSubstr("signal 9 (Killed)"));
  expect("rank_none", StatusCode::ok, "");
  expect("rank_killed", StatusCode::crash, killed);
  expect("naive", StatusCode::ok, "");
  expect("rank_killed_later", StatusCode::crash, killed);
  expect("rank_hangs", StatusCode::timeout, StartsWith("rank 1: forward had not ended"));
  expect("rank_writes_anywhere", StatusCode::crash, HasSubstr("rank 1"));
  EXPECT_TRUE(all_end(plugin_.string())) << "a rank outlived its run";
}

INSTANTIATE_TEST_SUITE_P(Over, RankFaults, ::testing::Values("peer", "nccl"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace longca::testing
