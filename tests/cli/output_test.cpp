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
  return program_of_tests();
}

TEST(Output, AReaderThatLeavesIsNoError) {
  const auto result = shell(
      "\"$LONGCA\" mask block_sparse --tokens 256K --heads 8:2 --json | head -c 10", program());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "{\"mask\":\"b");
  EXPECT_EQ(result.err, "");
}

TEST(Output, AFullDiskIsOne) {
  // No sentence can be printed there, but the exit code is that of the fault, not of an abort.
  EXPECT_EQ(shell("\"$LONGCA\" zzz 2> /dev/full", program()).exit_code, 2);
  EXPECT_EQ(shell("\"$LONGCA\" zzz 2>&-", program()).exit_code, 2);
  for (const char* verb :
       {"list", "mask block_sparse --tokens 256K --json", "--help", "env --json"}) {
    const auto result = shell(std::string("\"$LONGCA\" ") + verb + " > /dev/full", program());
    EXPECT_EQ(result.exit_code, 71) << verb;
    EXPECT_THAT(result.err, ::testing::HasSubstr("No space left on device")) << verb;
  }
}

}  // namespace
}  // namespace longca::testing
