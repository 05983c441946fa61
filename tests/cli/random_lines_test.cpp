// Command lines of any words: every one ends by itself with an exit code that --help names, and
// what it says fits its code.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "core/printable.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using Words = std::vector<std::string>;

/// Draws from a fixed seed, so that a failure comes back.
class LineMaker {
 public:
  explicit LineMaker(std::uint32_t seed) : random_(seed) {}

  Words line() {
    Words words;
    if (chance(0.97)) words.push_back(word(kVerbs));
    const int more = number(0, 6);
    for (int i = 0; i < more; ++i) add_piece(words);
    // What runs cells only lists them: whether they run right is not this test's matter.
    const bool runs = !words.empty() && (words[0] == "bench" || words[0] == "cp");
    if (runs) words.emplace_back("--dry-run");
    return words;
  }

 private:
  void add_piece(Words& words) {
    switch (number(0, 4)) {
      case 0:
        words.push_back(mutated(word(kOptions)));
        break;
      case 1:
        words.insert(words.end(), {word(kOptions), mutated(word(kValues))});
        break;
      case 2:
        words.insert(words.end(), {"-a", mutated(word(kAxes)) + "=" + mutated(word(kValues))});
        break;
      case 3:
        words.push_back(word(kOptions) + "=" + mutated(word(kValues)));
        break;
      default:
        words.push_back(mutated(word(kValues)));
    }
  }

  /// Now and then another text: cut, doubled, or with something strange in it.
  std::string mutated(std::string text) {
    if (chance(0.7)) return text;
    const std::size_t at = static_cast<std::size_t>(number(0, static_cast<int>(text.size())));
    switch (number(0, 3)) {
      case 0:
        return text.substr(0, at);
      case 1:
        return text + "," + text;
      case 2:
        return std::string(static_cast<std::size_t>(number(1, 3000)), 'a') + text;
      default:
        return text.insert(at, word(kStrange));
    }
  }

  const std::string& word(const Words& words) {
    return words[static_cast<std::size_t>(number(0, static_cast<int>(words.size()) - 1))];
  }
  int number(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  bool chance(double share) { return std::bernoulli_distribution(share)(random_); }

  static const Words kVerbs, kOptions, kAxes, kValues, kStrange;
  std::mt19937 random_;
};

// `check`, `worker` and what else starts processes have tests of their own.
const Words LineMaker::kVerbs{"bench",      "cp",    "list",   "lengths",   "mask", "report",
                              "completion", "bnech", "--help", "--version", "mask", "lengths"};
const Words LineMaker::kOptions{"--tokens",
                                "--seed",
                                "--window",
                                "--block",
                                "--density",
                                "--heads",
                                "--json",
                                "--help",
                                "--lengths",
                                "--block-tokens",
                                "--block-heads",
                                "--block-causal",
                                "--quiet",
                                "--strict",
                                "--resume",
                                "--dry-run",
                                "--time-limit",
                                "--case-limit",
                                "--md",
                                "--csv",
                                "--hostfile",
                                "--launcher",
                                "--memory-limit",
                                "--explain",
                                "-a",
                                "--tokns",
                                "-",
                                "--",
                                "-x",
                                "--plugin"};
const Words LineMaker::kAxes{
    "kernel",  "mask", "tokens", "heads", "dim",   "dtype",  "pass",   "seed",           "window",
    "density", "mode", "scheme", "ranks", "shard", "factor", "device", "tokens_per_rank"};
const Words LineMaker::kValues{"causal",
                               "document",
                               "block_sparse",
                               "full",
                               "pile",
                               "prolong64k",
                               "quick",
                               "cp_quick",
                               "kernels",
                               "masks",
                               "all",
                               "found",
                               "1K",
                               "64",
                               "1K:8K:x2",
                               "8:2",
                               "0",
                               "-1",
                               "1e9",
                               "nan",
                               "0.5",
                               "1024M",
                               "99999999999999999999",
                               "bash",
                               "zsh",
                               "naive",
                               "flash",
                               "usp",
                               "2,4",
                               "zigzag",
                               "forward",
                               "absent.so",
                               "absent.py",
                               "absent.jsonl",
                               "/",
                               "",
                               "-",
                               "none",
                               "suite.toml"};
const Words LineMaker::kStrange{"\033[2J", "\n",   "\r", "\t", "\u202e", "\u009b", "\xff",
                                "\xc3",    "%s%n", "{}", "'",  "\"",     "\\",     "../",
                                "=",       ",",    ":",  " ",  "🦊",   "\x7f"};

int lines_to_try() {
  const char* chosen = std::getenv("LONGCA_RANDOM_LINES");
  return chosen != nullptr ? std::atoi(chosen) : 2000;
}

/// One line that says so, without anything that acts.
void expect_one_sentence(const std::string& text) {
  ASSERT_TRUE(text.starts_with("longca: ") && text.ends_with('\n')) << printable(text);
  const std::string line = text.substr(0, text.size() - 1);
  EXPECT_EQ(line, printable(line));
}

void expect_printable_lines(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    ASSERT_EQ(line, printable(line));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
}

/// A quarter of the lines each, so that they run side by side.
class RandomLines : public ::testing::TestWithParam<int> {};

TEST_P(RandomLines, EndWithACodeAndASentenceThatFitsIt) {
  const TempDirectory folder;
  write_file(folder / "suite.toml", "[axes]\nmask = ['causal', 'full']\ntokens = [64, 128]\n");
  LineMaker lines(static_cast<std::uint32_t>(GetParam()));
  std::map<int, int> codes;
  for (int i = 0; i < lines_to_try() / 4; ++i) {
    const Words words = lines.line();
    SCOPED_TRACE(printable(fmt::format("{}", fmt::join(words, "' '")).substr(0, 2000)));
    const auto result = run_longca(words, {.directory = folder.path().string(), .timeout_s = 60});
    ++codes[result.exit_code];
    ASSERT_THAT(result.exit_code, ::testing::AnyOf(0, 2)) << printable(result.err);
    if (result.exit_code == 2) {
      EXPECT_EQ(result.out, "");
      expect_one_sentence(result.err);
    }
    expect_printable_lines(result.out);
    expect_printable_lines(result.err);
    if (HasFailure()) return;
  }
  EXPECT_GT(codes[0], 0);
  EXPECT_GT(codes[2], codes[0]) << "most lines make no sense";
}

INSTANTIATE_TEST_SUITE_P(Quarter, RandomLines, ::testing::Range(0, 4));

}  // namespace
}  // namespace longca::testing
