#include "bench/launch/rank_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::EndsWith;

/// What is said of ranks that a launcher never starts.
std::string reason_without(int ranks, const std::filesystem::path& folder) {
  RankSession session({}, ranks, folder);
  std::string reason;
  EXPECT_EQ(session.wait_until_ready(0.1, reason), RankSession::Start::failed);
  return reason;
}

TEST(RankSession, NamesTheRanksThatWereNotHeard) {
  const TempDirectory folder;
  const auto launcher = folder.path() / "mpirun";
  std::ofstream(launcher) << "#!/bin/sh\nexec sleep 60\n";
  std::filesystem::permissions(launcher, std::filesystem::perms::owner_all);
  setenv("LONGCA_MPIRUN", launcher.c_str(), 1);
  EXPECT_THAT(reason_without(1, folder.path()), EndsWith("nothing was heard of rank 0"));
  EXPECT_THAT(reason_without(3, folder.path()), EndsWith("nothing was heard of ranks 0, 1, 2"));
  EXPECT_THAT(reason_without(500, folder.path()), EndsWith("nothing was heard of ranks 0 to 499"));
}

}  // namespace
}  // namespace longca::testing
