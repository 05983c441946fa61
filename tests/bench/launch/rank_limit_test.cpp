// More ranks than a host takes: no launcher is started for them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "bench/launch/request.h"
#include "bench/record/record.h"
#include "bench/running.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A launcher that notes how many ranks it is to start, and starts none.
class RankLimit : public ::testing::Test {
 protected:
  RankLimit() {
    write_file(folder_ / "launcher",
               "#!/bin/bash\necho \"$2\" >> " + (folder_ / "log").string() + "\nexit 1\n");
    fs::permissions(folder_ / "launcher", fs::perms::owner_all);
  }

  ProcessResult cp(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{
        "cp", "cp_quick",         "--out", (folder_ / "x.jsonl").string(),
        "-a", "kernel=naive",     "-a",    "mask=causal",
        "-a", "tokens=96",        "-a",    "heads=6:3",
        "-a", "dim=16",           "-a",    "scheme=ring_p2p",
        "-a", "shard=contiguous", "-a",    "pass=forward"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_longca(arguments,
                      {.environment = {{"LONGCA_MPIRUN", (folder_ / "launcher").string()}}});
  }

  std::string launched() const {
    return fs::exists(folder_ / "log") ? read_file(folder_ / "log") : "";
  }

  TempDirectory folder_;
};

TEST_F(RankLimit, ARunOfMoreRanksThanTheHostTakesIsRefused) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, std::vector<std::string>{"--dry-run"}}) {
    std::vector<std::string> arguments{"-a", "ranks=100000"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = cp(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("100000 ranks need a place each, and the "));
    EXPECT_THAT(result.err, HasSubstr(" of this host take"));
    EXPECT_FALSE(fs::exists(folder_ / "x.jsonl"));
  }
  EXPECT_EQ(launched(), "");
}

TEST_F(RankLimit, AmongOthersItsCellsAreUnavailable) {
  cp({"-a", "ranks=3,100000"});
  const auto records = read_records(folder_ / "x.jsonl").records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].c.ranks, 100000);
  EXPECT_EQ(records[1].status.code, StatusCode::unavailable);
  EXPECT_THAT(records[1].status.reason, HasSubstr("100000 ranks need a place each, and the "));
  EXPECT_EQ(launched().find("100000"), std::string::npos);
  EXPECT_THAT(launched(), HasSubstr("3\n"));
}

}  // namespace
}  // namespace longca::testing
