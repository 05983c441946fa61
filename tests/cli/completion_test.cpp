#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

/// What a real bash offers when TAB is pressed at the end of `line`, as a list.
std::vector<std::string> completions(const std::string& line) {
  static const TempDirectory directory;
  static const std::string script = [] {
    write_file(directory / "completion.bash", run_longca({"completion", "bash"}).out);
    return (directory / "completion.bash").string();
  }();
  const auto result = run_process(
      {"bash", "--norc", "-c",
       "source \"$1\"; COMP_LINE=$2 COMP_POINT=${#2}; _longca; printf '%s\\n' \"${COMPREPLY[@]}\"",
       "bash", script, line});
  EXPECT_EQ(result.err, "") << line;
  std::vector<std::string> words;
  std::istringstream out(result.out);
  for (std::string word; std::getline(out, word);) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

TEST(Completion, Verbs) {
  EXPECT_THAT(completions("longca le"), ElementsAre("lengths"));
  EXPECT_THAT(completions("longca "), IsSupersetOf({"bench", "mask", "list", "--help"}));
}

TEST(Completion, Options) {
  EXPECT_THAT(completions("longca mask causal --tok"), ElementsAre("--tokens"));
  EXPECT_THAT(completions("./longca bench --out"), ElementsAre("--out"));
}

TEST(Completion, NamesOfPositionals) {
  EXPECT_THAT(completions("longca mask block_sparse_"), ElementsAre("block_sparse_variable"));
  EXPECT_THAT(completions("longca lengths prolong5"),
              ElementsAre("prolong512k", "prolong512k+long"));
  EXPECT_THAT(completions("longca list m"), ElementsAre("masks"));
  EXPECT_THAT(completions("longca bench qui"), ElementsAre("quick"));
}

TEST(Completion, AxesAndTheirNames) {
  EXPECT_THAT(completions("longca bench -a ker"), ElementsAre("kernel="));
  EXPECT_THAT(completions("longca bench -a mask=causal_b"), ElementsAre("causal_blockwise"));
  EXPECT_THAT(completions("longca bench quick -a dtype=float32,bf"),
              ElementsAre("float32,bfloat16"));
  EXPECT_THAT(completions("longca check -a kernel="), Contains("flash"));
}

/// What -a takes depends on the verb: axes of ranks, and those that only records have.
TEST(Completion, OffersTheAxesThatTheVerbTakes) {
  for (const char* verb : {"bench", "check", "calibrate", "compare"}) {
    const std::string line = std::string("longca ") + verb + " -a ";
    EXPECT_THAT(completions(line + "t"), ElementsAre("tokens=")) << verb;
    EXPECT_THAT(completions(line + "p"), ElementsAre("pass=")) << verb;
    EXPECT_THAT(completions(line + "s"),
                UnorderedElementsAre("sink=", "softcap=", "seed=", "selection="))
        << verb;
  }
  for (const char* verb : {"cp", "simulate", "advise"}) {
    const std::string line = std::string("longca ") + verb + " -a ";
    EXPECT_THAT(completions(line + "t"),
                UnorderedElementsAre("tokens=", "tokens_per_rank=", "transport="))
        << verb;
    EXPECT_THAT(completions(line + "p"), ElementsAre("pass=")) << verb;
    EXPECT_THAT(completions(line + "si"), ElementsAre("sink=")) << verb;
  }
  EXPECT_THAT(completions("longca report -a p"), UnorderedElementsAre("pass=", "platform="));
  EXPECT_THAT(completions("longca report -a platform="), ElementsAre());
}

TEST(Completion, ValuesOfOptions) {
  EXPECT_THAT(completions("longca mask causal --lengths chatqa_s"),
              ElementsAre("chatqa_short", "chatqa_short+long"));
  EXPECT_THAT(completions("longca mask causal --block-heads "), ElementsAre("kv", "query"));
}

TEST(Completion, Files) {
  const TempDirectory directory;
  write_file(directory / "plugin.so", "");
  const auto path = (directory / "plu").string();
  EXPECT_THAT(completions("longca bench --plugin " + path),
              ElementsAre((directory / "plugin.so").string()));
}

TEST(Completion, OtherShellsAreRefusedByName) {
  const auto result = run_longca({"completion", "fish"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, ::testing::HasSubstr("'fish'"));
}

}  // namespace
}  // namespace longca::testing
