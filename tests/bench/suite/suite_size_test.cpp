// How many cells suites have, counted without making them.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/suite/axes.h"
#include "bench/suite/cases.h"
#include "bench/suite/suite.h"
#include "core/error.h"

namespace longca::testing {
namespace {

/// Expects size_of to count what expand makes, and a cut list to begin as the whole one.
void expect_counted(const CaseList& list, const SuiteSize& size, const CaseList& cut) {
  std::set<std::string> problems;
  for (const Case& c : list.cases) problems.insert(c.problem_key());
  std::map<std::string, std::int64_t> skipped;
  for (const auto& entry : list.skipped) ++skipped[entry.reason];
  EXPECT_EQ(size.cells, std::ssize(list.cases));
  EXPECT_EQ(size.problems, std::ssize(problems));
  EXPECT_EQ(size.skipped, skipped);
  ASSERT_LE(cut.cases.size(), list.cases.size());
  for (std::size_t i = 0; i < cut.cases.size(); ++i) {
    EXPECT_EQ(cut.cases[i].key(), list.cases[i].key());
  }
}

/// Any axes of a few values each, those that depend on each other among them.
Suite any_suite(bool over_ranks) {
  static const std::map<std::string, std::vector<std::string>> k_axes = {
      {"kernel", {"naive", "flash"}},
      {"mask", {"causal", "sliding_window", "document", "global_sliding_window", "block_sparse"}},
      {"tokens", {"64", "128", "256"}},
      {"heads", {"8:2", "4:4"}},
      {"dtype", {"float32", "bfloat16"}},
      {"pass", {"forward", "backward"}},
      {"deterministic", {"0", "1"}},
      {"sink", {"0", "1"}},
      {"softcap", {"0", "30", "50"}},
      {"lengths", {"pile", "prolong64k"}},
      {"seed", {"1", "2", "3"}},
      {"window", {"auto", "16", "1024"}},
      {"block", {"64", "128"}},
      {"selection", {"random", "scores"}},
      {"device", {"found", "cpu"}}};
  static const std::map<std::string, std::vector<std::string>> k_of_ranks = {
      {"scheme", {"ulysses", "usp", "ring_p2p"}},
      {"ranks", {"2", "4", "8"}},
      {"tokens_per_rank", {"64", "128", "256"}},
      {"shard", {"published", "best", "zigzag"}},
      {"factor", {"1", "2", "4"}}};
  const auto some_of = [](const std::vector<std::string>& values) {
    return *rc::gen::suchThat(
        rc::gen::unique<std::vector<std::string>>(
            *rc::gen::inRange<std::size_t>(1, values.size() + 1), rc::gen::elementOf(values)),
        [](const auto& chosen) { return !chosen.empty(); });
  };
  Suite suite = parse_suite("", "s.toml");
  const auto add = [&](const auto& axes) {
    for (const auto& [name, values] : axes) {
      if (*rc::gen::inRange(0, 3) > 0) suite.axes[name] = some_of(values);
    }
  };
  suite.axes["kernel"] = {"naive"};
  add(k_axes);
  if (over_ranks) {
    suite.axes["scheme"] = {"usp"};
    suite.axes["ranks"] = {"2"};
    add(k_of_ranks);
    if (suite.axes.contains("tokens_per_rank")) suite.axes.erase("tokens");
  }
  const auto any_axis = [&] {
    const bool of_ranks = over_ranks && *rc::gen::inRange(0, 3) == 0;
    return *rc::gen::elementOf(of_ranks ? k_of_ranks : k_axes);
  };
  const int exceptions = *rc::gen::inRange(0, 3);
  for (int i = 0; i < exceptions; ++i) {
    SuiteException exception;
    const auto [name, values] = any_axis();
    exception.when[name] = some_of(values);
    const auto [other, others] = any_axis();
    if (*rc::gen::arbitrary<bool>()) {
      exception.skip = fmt::format("for reason {}", i);
    } else {
      exception.set[other] = {others.front()};
    }
    suite.exceptions.push_back(std::move(exception));
  }
  return suite;
}

std::string text_of(const AxisValues& axes) {
  std::string text;
  for (const auto& [name, values] : axes) text += fmt::format(" {} = {}\n", name, values);
  return text;
}

std::string text_of(const Suite& suite) {
  std::string text = text_of(suite.axes);
  for (const SuiteException& exception : suite.exceptions) {
    text += fmt::format("when\n{}set\n{}{}\n", text_of(exception.when), text_of(exception.set),
                        exception.skip);
  }
  return text;
}

RC_GTEST_PROP(SuiteSize, IsCountedWithoutMakingCells, ()) {
  const Suite suite = any_suite(false);
  SCOPED_TRACE(text_of(suite));
  try {
    const CaseList list = expand(suite);
    const bool has_order = suite.exceptions.empty();  // else the whole list is sorted anew
    expect_counted(list, size_of(suite), has_order ? expand(suite, 7) : CaseList{});
  } catch (const InputError&) {
    RC_DISCARD("no cell");
  }
  RC_ASSERT(!::testing::Test::HasFailure());
}

RC_GTEST_PROP(SuiteSize, OverRanksIsCountedWithoutMakingCells, ()) {
  const Suite suite = any_suite(true);
  SCOPED_TRACE(text_of(suite));
  try {
    const CaseList list = expand_over_ranks(suite, {});
    const bool has_order = suite.exceptions.empty();
    expect_counted(list, size_over_ranks(suite, {}),
                   has_order ? expand_over_ranks(suite, {}, 7) : CaseList{});
  } catch (const InputError&) {
    RC_DISCARD("no cell");
  }
  RC_ASSERT(!::testing::Test::HasFailure());
}

TEST(SuiteSize, OfAMillionIsCountedFromAFew) {
  std::string seeds;
  for (int seed = 0; seed < 1000; ++seed) seeds += fmt::format("{}{}", seed == 0 ? "" : ",", seed);
  Suite suite = parse_suite("[axes]\nkernel = \"naive\"\npass = \"forward\"\n", "s.toml");
  override_axes(suite, {{"seed", find_axis("seed").parse(seeds)},
                        {"tokens", find_axis("tokens").parse(seeds.substr(2))}});
  EXPECT_EQ(size_of(suite).cells, 999'000);
  EXPECT_EQ(size_of(suite).problems, 999'000);
  EXPECT_EQ(expand(suite, 10).cases.size(), 10U);
}

/// Two axes of ranks of 700 values each, and a cut off the list of their product.
TEST(SuiteSize, OfAMillionOverRanksIsCountedFromAFew) {
  constexpr int kValues = 700;
  std::string counts = "1";
  for (int count = 2; count <= kValues; ++count) counts += fmt::format(",{}", count);
  for (const std::string other : {"factor", "tokens_per_rank", "window", "heads"}) {
    SCOPED_TRACE(other);
    Suite suite = parse_suite(
        "[axes]\nkernel = \"naive\"\nmask = \"sliding_window\"\npass = \"forward\"\nscheme = "
        "[\"usp\", \"ulysses\"]\nshard = \"zigzag\"\n",
        "s.toml");
    std::string values = counts;
    if (other == "heads") {
      values = "1:1";
      for (int count = 2; count <= kValues; ++count) values += fmt::format(",{}:1", count);
      suite.axes["scheme"] = {"usp"};
    }
    if (other == "tokens_per_rank" || other == "window") suite.axes["scheme"] = {"usp"};
    override_axes(suite, {{"ranks", find_axis("ranks").parse(counts)},
                          {other, find_axis(other).parse(values)}});
    const SuiteSize size = size_over_ranks(suite, {});
    const std::int64_t of_one_value = other == "factor" ? kValues : 0;  // ulysses has no factor
    EXPECT_EQ(size.cells, kValues * kValues + of_one_value);
    EXPECT_EQ(size.problems, other == "factor" ? kValues : kValues * kValues);
    EXPECT_EQ(expand_over_ranks(suite, {}, 10).cases.size(), 10U);
  }
}

/// The size as it is of the cells themselves.
void expect_size_of_cells(const Suite& suite) {
  SuiteSize expected;
  try {
    const CaseList list = expand(suite);
    expected.cells = std::ssize(list.cases);
    std::set<std::string> problems;
    for (const Case& c : list.cases) problems.insert(c.problem_key());
    expected.problems = std::ssize(problems);
    for (const CaseList::Skipped& skipped : list.skipped) ++expected.skipped[skipped.reason];
  } catch (const InputError&) {
    return;  // all cells are left out
  }
  const SuiteSize size = size_of(suite);
  EXPECT_EQ(size.cells, expected.cells);
  EXPECT_EQ(size.problems, expected.problems);
  EXPECT_EQ(size.skipped, expected.skipped);
}

TEST(SuiteSize, IsThatOfTheCellsWhateverTheExceptions) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> values = {
      {"seed", {"1", "2", "3", "4"}},
      {"tokens", {"64", "65", "128"}},
      {"mask", {"\"causal\"", "\"document\"", "\"sliding_window\"", "\"block_sparse\""}},
      {"dtype", {"\"float32\"", "\"bfloat16\""}},
      {"pass", {"\"forward\"", "\"backward\""}},
      {"window", {"8", "16"}},
      {"density", {"0.25", "0.5"}}};
  std::mt19937 random(19);
  const auto draw = [&](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
  };
  for (int round = 0; round < 100; ++round) {
    std::string text = "[axes]\nkernel = \"naive\"\n";
    for (const auto& [axis, all] : values) {
      text += fmt::format("{} = [{}]\n", axis, fmt::join(all, ", "));
    }
    for (std::size_t i = draw(5); i > 0; --i) {
      const auto& [axis, all] = values[draw(values.size())];
      const auto& [other, others] = values[draw(values.size())];
      text += fmt::format("[[exceptions]]\nwhen = {{ {} = [{}, {}]", axis, all[0], all.back());
      if (other != axis) text += fmt::format(", {} = {}", other, others[draw(others.size())]);
      const auto& [changed, into] = values[draw(values.size())];
      text += draw(3) == 0 ? fmt::format(" }}\nset = {{ {} = {} }}\n", changed, into[0])
                           : fmt::format(" }}\nskip = \"reason {}\"\n", i);
    }
    SCOPED_TRACE(text);
    expect_size_of_cells(parse_suite(text, "s.toml"));
    if (::testing::Test::HasFailure()) return;
  }
}

/// Neither the cells nor those left out of a large product are made to list a few.
TEST(SuiteSize, OfAMillionFewAreMadeThoughMostAreLeftOut) {
  std::string seeds;
  for (int seed = 0; seed < 100'000; ++seed) seeds += fmt::format("{},", seed);
  const Suite suite = parse_suite(
      "[axes]\nkernel = \"naive\"\npass = \"forward\"\nmask = [\"document\", \"causal\"]\n"
      "tokens = [64, 128, 256, 512]\nseed = [" +
          seeds +
          "]\n"
          "[[exceptions]]\nwhen = { mask = \"document\", seed = [5, 99999] }\nskip = \"two\"\n"
          "[[exceptions]]\nwhen = { mask = \"document\" }\nskip = \"all\"\n",
      "s.toml");
  const SuiteSize size = size_of(suite);
  EXPECT_EQ(size.cells, 400'000);
  EXPECT_EQ(size.skipped, (std::map<std::string, std::int64_t>{{"two", 8}, {"all", 399'992}}));
  EXPECT_LE(expand(suite, 10).skipped.size(), 500U);
}

}  // namespace
}  // namespace longca::testing
