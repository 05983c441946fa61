#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"

namespace longca::testing {
namespace {

/// The verbs that `longca --help` names: its last block of indented lines.
std::vector<std::string> verbs() {
  std::istringstream help(run_longca({"--help"}).out);
  std::vector<std::string> verbs;
  bool inside = false;
  for (std::string line; std::getline(help, line);) {
    std::string word;
    std::istringstream(line) >> word;
    if (inside && line.starts_with("  ")) verbs.push_back(word);
    inside = (inside && !line.empty()) || line.starts_with("Subcommands:");
  }
  return verbs;
}

std::size_t characters(const std::string& utf8) {
  return static_cast<std::size_t>(std::ranges::count_if(
      utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void expect_one_screen(const std::string& help) {
  std::istringstream lines(help);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_LE(characters(line), 80U) << line;
  }
  EXPECT_LE(count, 30) << help;
}

TEST(Help, FitsOneScreenAndGivesAnExample) {
  const auto top = run_longca({"--help"});
  EXPECT_EQ(top.exit_code, 0);
  expect_one_screen(top.out);
  EXPECT_THAT(top.out, ::testing::HasSubstr("Example: longca "));
  for (const char* code : {"0 ", "1 ", "2 ", "70 ", "71 "}) {
    EXPECT_THAT(top.out.substr(top.out.find("Exit codes:")), ::testing::HasSubstr(code));
  }
  for (const auto& verb : verbs()) {
    const auto help = run_longca({verb, "--help"});
    EXPECT_EQ(help.exit_code, 0) << verb;
    expect_one_screen(help.out);
    EXPECT_THAT(help.out, ::testing::HasSubstr("Example: ")) << verb;
  }
}

TEST(Help, IsAWordToo) {
  EXPECT_EQ(run_longca({"help"}).out, run_longca({"--help"}).out);
  EXPECT_EQ(run_longca({"help", "advise"}).out, run_longca({"advise", "--help"}).out);
  EXPECT_EQ(run_longca({"help"}).exit_code, 0);
  const auto unknown = run_longca({"help", "benhc"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, ::testing::HasSubstr("bench"));
}

TEST(Help, HasNoTwoEmptyLinesAndNamesEachOption) {
  for (const auto& verb : verbs()) {
    EXPECT_THAT(run_longca({verb, "--help"}).out, ::testing::Not(::testing::HasSubstr("\n\n\n")))
        << verb;
  }
  const std::string advise = run_longca({"advise", "--help"}).out;
  for (const char* line : {"\n  --plugin FILE ", "\n  --samples N ", "\n  --out FILE.jsonl "}) {
    EXPECT_THAT(advise, ::testing::HasSubstr(line));
  }
}

TEST(Help, UsageNamesTheSuiteThatAVerbTakes) {
  for (const std::string verb : {"bench", "cp", "simulate"}) {
    EXPECT_THAT(run_longca({verb, "--help"}).out,
                ::testing::HasSubstr("Usage: longca " + verb + " [OPTIONS] [SUITE]\n"));
  }
}

/// No verb keeps to itself what the others show.
TEST(Help, ShowsTheSameOptionsOfAllVerbsThatRunASuite) {
  for (const std::string verb : {"bench", "cp"}) {
    const std::string help = run_longca({verb, "--help"}).out;
    for (const char* line : {"\n  SUITE  ", "\n  -h,--help  ", "\n  --quiet  "}) {
      EXPECT_THAT(help, ::testing::HasSubstr(line)) << verb;
    }
  }
}

TEST(Help, NamesEveryVerbThatIsBuiltAndNoOther) {
  EXPECT_THAT(verbs(), ::testing::UnorderedElementsAre(
                           "advise", "bench", "calibrate", "cp", "check", "compare", "report",
                           "list", "lengths", "mask", "env", "simulate", "completion"));
  for (const char* verb : {"compare", "simulate"}) {
    EXPECT_EQ(run_longca({verb}).exit_code, 2) << verb;
  }
}

TEST(Help, VersionIsOneLine) {
  const auto result = run_longca({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, ::testing::MatchesRegex("longca [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace
}  // namespace longca::testing
