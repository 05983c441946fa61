#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/process.h"
#include "support/temp_directory.h"

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

TEST(Output, RecordsHaveAFileOfTheirOwn) {
  const TempDirectory folder;
  const std::string run = fmt::format(
      "cd '{}'; \"$LONGCA\" bench -a kernel=naive -a mask=causal -a tokens=64 -a pass=forward "
      "--out ",
      folder.path().string());
  const std::vector<std::pair<std::string, std::string>> redirected{
      {"/dev/stdout > f", "is where standard output goes"},
      {"f.jsonl >> f.jsonl", "is where standard output goes"},
      {"/dev/stderr 2> f; code=$?; cat f >&2; exit $code", "is where standard error goes"}};
  for (const auto& [where, part] : redirected) {
    const auto result = shell(run + where, program());
    EXPECT_EQ(result.exit_code, 2) << where;
    EXPECT_THAT(result.err, ::testing::HasSubstr(part)) << where;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(std::filesystem::file_size(folder / "f.jsonl"), 0U);
}

}  // namespace
}  // namespace longca::testing
