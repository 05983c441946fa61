// Ranks that Python hosts, with kernels from Python files: the system's Python, without any
// package.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "bench/record/record.h"
#include "bench/running.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Arguments = std::vector<std::string>;

/// A copy of the example of a plug-in in Python, whose path is on the command line of every rank of
/// this test and of no other process.
class PythonRanks : public ::testing::Test {
 protected:
  PythonRanks() : plugin_((folder_ / "plugin.py").string()), out_(folder_ / "x.jsonl") {
    fs::copy_file(PYTHON_EXAMPLE, plugin_);
  }

  void SetUp() override {
#ifdef LONGCA_SANITIZED
    GTEST_SKIP() << "the system's Python cannot load a library built with sanitizers";
#endif
  }

  ProcessResult run(const Arguments& more, const ProcessOptions& options = {}) const {
    Arguments arguments{"cp",           "cp_quick",
                        "--out",        out_.string(),
                        "--time-limit", "0.01",
                        "-a",           "kernel=rowwise_python",
                        "-a",           "scheme=ring_p2p",
                        "-a",           "mask=causal",
                        "-a",           "tokens=48",
                        "-a",           "heads=2:2",
                        "-a",           "dim=8",
                        "-a",           "shard=zigzag",
                        "-a",           "ranks=2",
                        "-a",           "dtype=float32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_longca(arguments, options);
  }

  std::vector<Record> records() const {
    return read_records(out_).records;
  }

  TempDirectory folder_;
  std::string plugin_;
  fs::path out_;
};

/// mpirun puts its own folder, which has a Python too, before all others on the ranks' PATH.
TEST_F(PythonRanks, AreHostedByThePythonThatIsFirstOnThePath) {
  const fs::path own = folder_ / "own";
  fs::create_directory(own);
  write_file(own / "python3", "#!/bin/sh\nexport BY_OWN_PYTHON=1\nexec /usr/bin/python3 \"$@\"\n");
  fs::permissions(own / "python3", fs::perms::owner_all);
  write_file(plugin_, read_file(plugin_) + "\nimport os\nassert os.environ['BY_OWN_PYTHON']\n");
  const std::string path = std::getenv("PATH");
  const auto result =
      run({"--plugin", plugin_}, {.environment = {{"PATH", own.string() + ":" + path}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ASSERT_THAT(records(), SizeIs(2));
  for (const Record& record : records()) EXPECT_TRUE(record.status.ok()) << record.status.reason;
}

TEST_F(PythonRanks, AreVerifiedAndTimedWithTheirResultsMerged) {
  const auto result = run({"--plugin", plugin_, "-a", "scheme=ring_p2p,ulysses", "-a",
                           "mask=causal,causal_document", "-a", "kernel=rowwise_python,naive"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ASSERT_THAT(records(), SizeIs(2 * 2 * 2 * 2));
  for (const Record& record : records()) {
    EXPECT_TRUE(record.status.ok()) << record.c.key() << ": " << record.status.reason;
    EXPECT_THAT(record.rank_times_ms, SizeIs(2)) << record.c.key();
    if (record.c.kernel != "rowwise_python") continue;
    EXPECT_EQ(record.notes.at("language"), "Python");
    if (record.c.scheme == "ring_p2p") {
      EXPECT_THAT(record.notes.at("merging"), HasSubstr("after the kernel"));
    }
  }
  EXPECT_TRUE(all_end(plugin_)) << "a rank outlived its run";
}

TEST_F(PythonRanks, AnExceptionOnOneRankIsACrashThatNamesIt) {
  std::string text = read_file(plugin_);
  const std::string mark = "        for head in range(self.heads_q):\n";
  text.insert(text.find(mark),
              "        import os\n"
              "        if os.environ['OMPI_COMM_WORLD_RANK'] == '1':\n"
              "            raise ValueError('this kernel raises on one rank')\n");
  write_file(plugin_, text);
  const auto result = run({"--plugin", plugin_, "-a", "kernel=rowwise_python,naive"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ASSERT_THAT(records(), SizeIs(4));
  for (const Record& record : records()) {
    const bool raises = record.c.kernel == "rowwise_python";
    EXPECT_EQ(to_string(record.status.code), raises ? "crash" : "ok") << record.status.reason;
    if (!raises) continue;
    EXPECT_THAT(
        record.status.reason,
        AllOf(HasSubstr("rank 1"), HasSubstr("ValueError: this kernel raises on one rank")));
  }
  EXPECT_TRUE(all_end(plugin_)) << "a rank outlived its run";
}

TEST_F(PythonRanks, APluginThatFailsOnOneRankOnlyIsNamedWithItsSentence) {
  write_file(plugin_, read_file(plugin_) +
                          "\nimport os\n"
                          "if os.environ.get('OMPI_COMM_WORLD_RANK') == '1':\n"
                          "    raise ValueError('not on this rank')\n");
  const auto result = run({"--plugin", plugin_, "-a", "pass=forward"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ASSERT_THAT(records(), SizeIs(1));
  EXPECT_EQ(to_string(records()[0].status.code), "crash");
  EXPECT_THAT(records()[0].status.reason,
              AllOf(HasSubstr("could not start"), HasSubstr("not on this rank")));
  EXPECT_TRUE(all_end(plugin_)) << "a rank outlived its run";
}

}  // namespace
}  // namespace longca::testing
