#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/process.h"

namespace longca::testing {
namespace {

/// Runs a line of shell in which $LONGCA is the program.
ProcessResult shell(const std::string& line, const std::string& program) {
  return run_process({"bash", "-c", "set -o pipefail; " + line},
                     {.environment = {{"LONGCA", program}}});
}

std::string program() {
  return LONGCA_PROGRAM;
}

TEST(Output, AReaderThatLeavesIsNoError) {
  const auto result = shell(
      "\"$LONGCA\" mask block_sparse --tokens 256K --heads 8:2 --json | head -c 10", program());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "{\"mask\":\"b");
  EXPECT_EQ(result.err, "");
}

TEST(Output, AFullDiskIsOne) {
  for (const char* verb :
       {"list", "mask block_sparse --tokens 256K --json", "--help", "env --json"}) {
    const auto result = shell(std::string("\"$LONGCA\" ") + verb + " > /dev/full", program());
    EXPECT_NE(result.exit_code, 0) << verb;
    EXPECT_THAT(result.err, ::testing::HasSubstr("No space left on device")) << verb;
  }
}

}  // namespace
}  // namespace longca::testing
