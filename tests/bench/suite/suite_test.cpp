#include "bench/suite/suite.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "bench/expect_input_error.h"
#include "bench/suite/axes.h"
#include "bench/suite/cases.h"
#include "bench/suite/notices.h"
#include "core/error.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;

CaseList expand_text(const std::string& text) {
  return expand(parse_suite(text, "s.toml"));
}

TEST(Suite, ReadsAxesExceptionsAndLimits) {
  const Suite suite = parse_suite(R"(
description = "two masks"
[axes]
mask = ["causal", "full"]
tokens = [64, "1K:2K:x2"]
density = 0.25
[[exceptions]]
when = { mask = "full", tokens = 64 }
skip = "too small"
[run]
time_limit_s = 2
memory_limit_mib = 512
)",
                                  "dir/two.toml");
  EXPECT_EQ(suite.name, "two");
  EXPECT_EQ(suite.description, "two masks");
  EXPECT_THAT(suite.axes.at("tokens"), ElementsAre("64", "1024", "2048"));
  EXPECT_THAT(suite.axes.at("density"), ElementsAre("0.25"));
  EXPECT_EQ(suite.exceptions.size(), 1U);
  EXPECT_EQ(suite.limits.time_limit_s, 2.0);
  EXPECT_EQ(suite.limits.memory_limit_mib, 512);
  EXPECT_EQ(suite.limits.case_limit_s, RunLimits{}.case_limit_s);
}

TEST(Suite, ErrorsSayFileLineAndColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"[axes]\nmask = [\"causal\"\n", "s.toml:"},
      {"[axes]\nmask = 5 5\n", "s.toml:2:10: "},
      {"[axis]\n", "s.toml:1:1: unknown key 'axis' (did you mean 'axes'?)"},
      {"[axes]\ntoken = 5\n", "s.toml:2:9: unknown axis 'token' (did you mean 'tokens'?)"},
      {"[axes]\ntokens = [5,\n 0]\n", "s.toml:3:2: tokens 0 is too small"},
      {"[axes]\ntokens = 1.5\n", "s.toml:2:10: tokens '1.5'"},
      {"[axes]\ntokens = true\n", "s.toml:2:10: axis 'tokens' is true: it takes numbers"},
      {"[axes]\ntokens = { low = 5 }\n", "s.toml:2:10: axis 'tokens' is a table: it takes"},
      {"[axes]\nmask = []\n", "s.toml:2:8: axis 'mask' has no value: the product is empty"},
      {"axes = 5\n", "s.toml:1:8: 'axes' is 5: a table is meant"},
      {"[run]\ntime_limit = 5\n", "did you mean 'time_limit_s'"},
      {"[run]\ntime_limit_s = -5\n", "s.toml:2:16: "},
      {"[run]\nmemory_limit_mib = 0.5\n", "whole number"},
      {"[run]\nmemory_limit_mib = 9223372036854775807\n", "from 0 to 1099511627776"},
      {"[run]\ncase_limit_s = 0\n", "no cell could end by then"},
      {"[run]\ntime_limit_s = 1e10\n", "from 0 to 1000000000"},
      {"[[exceptions]]\nskip = \"x\"\n", "needs 'when'"},
      {"[[exceptions]]\nwhen = { tokens = 5 }\n", "either 'skip'"},
      {"[[exceptions]]\nwhen = { tokens = 5 }\nset = { tokens = [5, 6] }\n",
       "one value of 'tokens'"},
      {"exceptions = 5\n", "[[exceptions]]"},
      {"description = 5\n", "'description' is 5: a text is meant"},
      {"only_what_runs = 1\n", "s.toml:1:18: 'only_what_runs' is 1: true or false is meant"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.first);
    expect_input_error([&] { parse_suite(one.first, "s.toml"); }, one.second);
  }
}

TEST(Suite, IsFoundByNameInTheConfigsFolder) {
  const TempDirectory folder;
  write_file(folder / "mine.toml", "description = \"my own\"\n");
  write_file(folder / "notes.txt", "not a suite");
  ASSERT_EQ(setenv("LONGCA_CONFIGS", folder.path().c_str(), 1), 0);
  EXPECT_EQ(load_suite("mine").description, "my own");
  EXPECT_EQ(load_suite((folder / "mine.toml").string()).name, "mine");
  ASSERT_EQ(available_suites().size(), 1U);
  EXPECT_EQ(available_suites().front().name, "mine");
  expect_input_error([] { load_suite("kernel=flash"); },
                     "values of an axis are given as -a kernel=flash");
  expect_input_error([] { load_suite("mime"); }, "unknown suite 'mime' (did you mean 'mine'?)");
  expect_input_error([] { load_suite("absent.toml"); }, "cannot read absent.toml: No such file");
  unsetenv("LONGCA_CONFIGS");
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Suite, DepthAndSizeHaveLimits) {
  const std::pair<std::string, const char*> cases[] = {
      {"description = 'a'\n" + repeated("a.", 50000) + "a = 1\n",
       "s.toml:2: keys and values are nested deeper than 16"},
      {"[" + repeated("a.", 50000) + "a]\n", "s.toml:1: keys"},
      {"[axes]\nmask = " + repeated("[", 50000), "s.toml:2: keys"},
      {"axes = " + repeated("{a=", 50000), "s.toml:1: keys"},
      {"description = \"\"\"\n\\\"\"\"\"\n" + repeated("a . ", 20) + "a = 1\n", "s.toml:3: keys"},
      {"x = [\"\"\"a\"\"\"\"\", {" + repeated("a.", 50000) + "a=1}]\n", "s.toml:1: keys"},
      {"#" + repeated("x", 1 << 20), "'s.toml' is too large: the maximum is 1048576 bytes"},
      {repeated("[[exceptions]]\nwhen = { mask = \"full\" }\nskip = \"x\"\n", 101),
       "101 exceptions are too many: the maximum is 100"},
  };
  for (const auto& one : cases) {
    expect_input_error([&] { parse_suite(one.first, "s.toml"); }, one.second);
  }
  const std::string dots = repeated("a.", 50);
  for (const std::string& quoted :
       {"\"" + dots + "[[\"", "'" + dots + "'", "\"\"\"\n" + dots + "\"\"\"",
        "'x' # " + dots + repeated("[", 99)}) {
    EXPECT_EQ(parse_suite("description = " + quoted + "\n", "s.toml").axes.size(), 0U);
  }
}

TEST(Suite, ManyValuesAreReadOnce) {
  std::string list;
  for (int i = 0; i < 150'000; ++i) list += fmt::format("{},", i % 75'000);
  const Suite suite = parse_suite("[axes]\nseed = [" + list + "]\n", "s.toml");
  EXPECT_EQ(suite.axes.at("seed").size(), 75'000U);
}

TEST(Cases, EqualWorkIsOneCell) {
  // A causal mask has no window; its two cells are one.
  const CaseList list = expand_text(
      "[axes]\nkernel = \"naive\"\nmask = [\"causal\", \"sliding_window\"]\nwindow = [16, 32]\n"
      "pass = \"forward\"\n");
  std::vector<std::string> masks;
  for (const Case& c : list.cases) masks.push_back(c.mask);
  EXPECT_THAT(masks, ElementsAre("causal", "sliding_window", "sliding_window"));
}

TEST(Cases, CellsOfOneProblemAreNeighbours) {
  const CaseList list = expand_text(
      "[axes]\nkernel = [\"naive\"]\nmask = [\"causal\", \"full\"]\ntokens = [64, 128]\n"
      "mode = \"all\"\n");
  EXPECT_EQ(list.cases.size(), 2U * 2 * 2 * 3);
  std::set<std::string> seen;
  std::string last;
  for (const Case& c : list.cases) {
    if (c.problem_key() == last) continue;
    last = c.problem_key();
    EXPECT_TRUE(seen.insert(last).second) << last << " comes back";
  }
  EXPECT_EQ(seen.size(), 4U);
}

constexpr const char* kExceptions = R"(
[axes]
kernel = "naive"
mask = ["causal", "full"]
tokens = [64, 128]
pass = "forward"
[[exceptions]]
when = { mask = "full", tokens = [128] }
skip = "too slow"
[[exceptions]]
when = { mask = "causal" }
set = { dtype = "float32" }
)";

TEST(Cases, ExceptionsSkipAndSet) {
  const CaseList list = expand_text(kExceptions);
  ASSERT_EQ(list.cases.size(), 3U);
  ASSERT_EQ(list.skipped.size(), 1U);
  EXPECT_EQ(list.skipped[0].reason, "too slow");
  for (const Case& c : list.cases) {
    EXPECT_EQ(c.dtype, c.mask == "causal" ? DType::float32 : DType::bfloat16);
  }
}

TEST(Cases, ExceptionsApplyToValuesOfTheCommandLine) {
  Suite suite = parse_suite(kExceptions, "s.toml");
  override_axes(suite, {{"tokens", {"128"}}, {"mask", {"causal", "full"}}});
  const CaseList list = expand(suite);
  ASSERT_EQ(list.cases.size(), 1U);
  EXPECT_EQ(list.cases[0].mask, "causal");
  EXPECT_EQ(list.cases[0].dtype, DType::float32);
  ASSERT_EQ(list.skipped.size(), 1U);
  EXPECT_EQ(list.skipped[0].reason, "too slow");
}

TEST(Cases, AnExceptionDoesNotSetWhatTheCommandLineGives) {
  Suite suite = parse_suite(R"(
[axes]
kernel = "naive"
mask = "causal"
[[exceptions]]
when = { device = "cpu" }
set = { dtype = "float32", tokens = 64 }
[[exceptions]]
when = { dtype = "float32" }
set = { dim = 32 }
)",
                            "s.toml");
  override_axes(suite, {{"dtype", {"float16"}}, {"dim", {"16"}}});
  for (const Case& c : expand(suite).cases) {
    EXPECT_EQ(c.dtype, DType::float16);
    EXPECT_EQ(c.tokens, 64) << "the rest of the exception stays";
    EXPECT_EQ(c.head_dim, 16);
  }
  EXPECT_EQ(suite.exceptions.size(), 1U) << "one that sets nothing any more is gone";
}

TEST(Cases, ATotalLengthIsNotSetPerRank) {
  Suite suite = load_suite("cp");
  override_axes(suite, {{"device", {"cpu"}}, {"tokens", {"4096"}}, {"mask", {"sliding_window"}}});
  for (const Case& c : expand_over_ranks(suite, {.cpu = 2, .cuda = 0}).cases) {
    EXPECT_EQ(c.kernel, "flash");
    EXPECT_EQ(c.tokens, 4096);
    EXPECT_EQ(c.window, 1024) << "100 is for 512 tokens of a rank";
  }
}

/// Cells of one device and over ranks are one problem, so that one is the other's baseline.
TEST(Cases, ARunWithoutASuiteHasTheMasksOfCp) {
  const auto masks_of = [](const CaseList& list) {
    std::set<std::string> masks;
    for (Case c : list.cases) {
      c.scheme = std::nullopt;
      masks.insert(canonical(c).problem_key());
    }
    return masks;
  };
  Suite cp = load_suite("cp");
  override_axes(cp, {{"device", {"cuda"}}, {"tokens", {"32768"}}, {"ranks", {"4"}}});
  Suite own = load_suite("quick");
  drop_mask_axes(own);
  override_axes(
      own,
      {{"device", {"cuda"}}, {"tokens", {"32768"}}, {"kernel", {"slice"}}, {"heads", {"64:8"}}});
  EXPECT_EQ(masks_of(expand(own)), masks_of(expand_over_ranks(cp, {.cpu = 2, .cuda = 4})));
  EXPECT_EQ(masks_of(expand(own)).size(), mask_table().size());
}

TEST(Notices, SayOneReasonOfMany) {
  const Suite suite = parse_suite(R"(
[axes]
mask = ["causal", "full", "document"]
kernel = "naive"
[[exceptions]]
when = { mask = "causal" }
skip = "known"
[[exceptions]]
when = { mask = "full", pass = "forward" }
skip = "rare"
)",
                                  "s.toml");
  EXPECT_EQ(describe_skipped(suite, expand(suite)),
            "s leaves out 3 cells: known (2 of them, and 1 more reason: --dry-run of bench and cp "
            "lists all)");
  EXPECT_EQ(describe_skipped(suite, {}), "");
}

TEST(Notices, OneCellHasNoPlural) {
  const Suite suite = parse_suite(R"(
[axes]
mask = ["causal", "full"]
kernel = "naive"
pass = "forward"
[[exceptions]]
when = { mask = "causal" }
skip = "known"
)",
                                  "s.toml");
  EXPECT_EQ(describe_skipped(suite, expand(suite)), "s leaves out 1 cell: known");
}

TEST(Notices, SayTheDefaultsThatCellsHave) {
  Suite suite = load_suite("quick");
  drop_mask_axes(suite);
  const AxisValues given = {{"mask", {"sliding_window", "document", "full"}},
                            {"kernel", {"naive"}},
                            {"tokens", {"64", "128", "256", "512", "1024"}}};
  override_axes(suite, given);
  const CaseList list = expand(suite);
  EXPECT_EQ(describe_defaults(list.cases, given),
            "heads=8:2 dim=128 dtype=bfloat16 pass=forward,backward lengths=prolong64k seed=42 "
            "window=1024 device=cpu mode=burst");
  EXPECT_THAT(describe_defaults(list.cases, {}), ::testing::HasSubstr("tokens=(5 values) "));
  EXPECT_THAT(describe_defaults(list.cases, {{"tokens_per_rank", {"1"}}}),
              ::testing::Not(::testing::HasSubstr("tokens")));
}

TEST(Cases, NoneLeftOrFarTooManyAreErrors) {
  expect_input_error(
      [] {
        expand_text(
            "[axes]\nmask = \"full\"\n[[exceptions]]\nwhen = { mask = \"full\" }\nskip = \"no\"\n");
      },
      "suite 's' has no cell");
  expect_input_error(
      [] {
        expand_text(
            "[axes]\ntokens = \"1:1M:x2\"\nseed = \"1:1M:x2\"\ndim = \"1:1K:x2\"\n"
            "block = \"1:1M:x2\"\nwindow = \"1:1M:x2\"\n");
      },
      "more than 1000000 cells");
}

TEST(Cases, QuickKeepsWindowsBelowAQuarter) {
  const CaseList list = expand(load_suite("quick"));
  std::set<std::string> masks;
  for (const Case& c : list.cases) {
    masks.insert(c.mask);
    EXPECT_LT(c.window.value_or(0), c.tokens / 4);
    EXPECT_LT(c.block_tokens.value_or(0), c.tokens / 4);
  }
  EXPECT_EQ(masks.size(), mask_table().size());
}

CaseList expand_ranks(const std::string& text, const FoundRanks& found = {.cpu = 3, .cuda = 0}) {
  return expand_over_ranks(parse_suite(text, "s.toml"), found);
}

constexpr const char* kOverRanks = R"(
[axes]
kernel = "naive"
mask = ["causal", "full"]
tokens_per_rank = 64
pass = "forward"
scheme = ["ulysses", "ring_p2p"]
ranks = ["found", 8]
shard = "contiguous"
)";

TEST(Cases, OverRanksAreOrderedByThemAndFoundIsWhatThereIs) {
  const CaseList list = expand_ranks(kOverRanks);
  ASSERT_EQ(list.cases.size(), 2U * 2 * 4);
  std::vector<int> ranks;
  for (const Case& c : list.cases) {
    if (ranks.empty() || ranks.back() != *c.ranks) ranks.push_back(*c.ranks);
    EXPECT_EQ(c.tokens, 64 * *c.ranks);
    EXPECT_EQ(c.transport, "mpi");
  }
  EXPECT_THAT(ranks, ElementsAre(1, 2, 3, 8));
}

TEST(Cases, ATotalLengthReplacesOneOfEachRank) {
  Suite suite = parse_suite(kOverRanks, "s.toml");
  override_axes(suite, {{"tokens", {"100"}}});
  for (const Case& c : expand_over_ranks(suite, {}).cases) EXPECT_EQ(c.tokens, 100);
  override_axes(suite, {{"tokens_per_rank", {"5"}}});
  for (const Case& c : expand_over_ranks(suite, {}).cases) EXPECT_EQ(c.tokens, 5 * *c.ranks);
}

TEST(Cases, DefaultsFollowWhatAnExceptionSets) {
  const CaseList list = expand_ranks(R"(
[axes]
kernel = "naive"
mask = "full"
tokens_per_rank = 64
pass = "forward"
scheme = "usp"
shard = "zigzag"
ranks = 8
heads = "8:8"
[[exceptions]]
when = { device = "cpu" }
set = { heads = "8:2" }
[[exceptions]]
when = { heads = "8:2" }
set = { tokens_per_rank = 16 }
)");
  ASSERT_EQ(list.cases.size(), 1U);
  EXPECT_EQ(list.cases[0].factor, 2) << "the KV heads of the exception";
  EXPECT_EQ(list.cases[0].tokens, 128);
}

TEST(Cases, OfOneDeviceHaveNoAxesOfRanks) {
  for (const Case& c : expand(parse_suite(kOverRanks, "s.toml")).cases) {
    EXPECT_FALSE(c.scheme || c.ranks || c.shard || c.factor || c.transport) << c.key();
  }
}

TEST(Cases, SuitesOverRanksFitGpusAndCpus) {
  for (const char* name : {"cp", "cp_strong", "cp_sustained", "cp_tp8", "cp_quick"}) {
    SCOPED_TRACE(name);
    Suite suite = load_suite(name);
    EXPECT_TRUE(axis_of_ranks(suite.axes).has_value());
    for (const Case& c : expand_over_ranks(suite, {.cpu = 2, .cuda = 96}).cases) {
      if (c.device != "cpu") continue;
      EXPECT_EQ(c.kernel, "flash");
      EXPECT_LE(c.tokens, 2048);
      EXPECT_LT(c.window.value_or(0), c.tokens / 4);
    }
    if (suite.axes.at("device") == std::vector<std::string>{"cpu"}) continue;
    suite.axes["device"] = {"cuda"};
    std::set<int> ranks;
    std::set<std::string> masks;
    for (const Case& c : expand_over_ranks(suite, {.cpu = 2, .cuda = 96}).cases) {
      ranks.insert(*c.ranks);
      masks.insert(c.mask);
      EXPECT_NE(c.kernel, "flash");
    }
    EXPECT_THAT(ranks, ElementsAre(1, 2, 4, 8, 16, 32, 64, 96));
    if (suite.name == "cp") {
      EXPECT_EQ(masks.size(), mask_table().size());
    }
  }
}

}  // namespace
}  // namespace longca::testing
