#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/suite/axes.h"
#include "report/comparison_text.h"
#include "report/format.h"
#include "report/golden.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMasks[] = {"full", "causal", "document", "sliding_window", "block_sparse"};

/// Cell `i` taking `time` ms in `rounds` rounds.
Record compared_cell(std::size_t i, double time, int rounds = 5) {
  Record record;
  record.c.kernel = i % 2 == 0 ? "flash" : "naive";
  record.c.mask = kMasks[i % std::size(kMasks)];
  record.c.tokens = 1024 << (i / std::size(kMasks));
  record.c = canonical(record.c);
  for (int r = 0; r < rounds; ++r) {
    const double level = time * (1 + 0.001 * (r % 3));
    record.rounds_ms.push_back({level, level * 1.001, level * 0.999});
    record.samples_ms.insert(record.samples_ms.end(), record.rounds_ms.back().begin(),
                             record.rounds_ms.back().end());
  }
  record.metrics = {{"time_ms", time}, {"peak_bytes", 1e9}, {"sm_clock_mhz", 1980}};
  record.env = {{"commit", "aaaa"}, {"gpu_driver", "570.1"}};
  if (rounds == 1) record.rounds_ms.clear();
  return record;
}

Comparison sample_comparison() {
  std::vector<Record> base;
  std::vector<Record> next;
  for (std::size_t i = 0; i < 9; ++i) {
    base.push_back(compared_cell(i, 1.0 + static_cast<double>(i)));
    next.push_back(base.back());
    next.back().env.own()["commit"] = "bbbb";
  }
  next[1] = compared_cell(1, 2.5);
  next[1].metrics["sm_clock_mhz"] = 1700;
  next[2] = compared_cell(2, 2.4);
  next[3].status = {StatusCode::crash, "in forward the process was ended by signal 11"};
  base[4].status = {StatusCode::oom, "needs 90 GiB, the limit is 80 GiB"};
  next[5].metrics["peak_bytes"] = 3e9;
  next[6] = compared_cell(6, 7.1, 1);
  next.erase(next.begin() + 7);
  next.push_back(compared_cell(9, 1));
  return compare_records(base, next, {});
}

const ComparedNames kNames{"before.jsonl", "after.jsonl"};

TEST(ComparisonText, SaysThatNothingWasTimed) {
  std::vector<Record> cells{compared_cell(0, 1), compared_cell(1, 1), compared_cell(2, 1)};
  cells[0].status = cells[1].status = {StatusCode::crash, "the plug-in has no area"};
  cells[0].metrics = cells[1].metrics = {};
  std::ostringstream out;
  print_comparison(out, compare_records(cells, cells, {}), kNames, {});
  EXPECT_THAT(out.str(), HasSubstr("3 cells: 3 same\n2 of the same have no time in either file: "
                                   "crash, the plug-in has no area\n"));
}

TEST(ComparisonText, ATableOfWhatChangedWorstFirst) {
  std::ostringstream out;
  print_comparison(out, sample_comparison(), kNames);
  expect_golden(out.str(), "comparison.txt");
}

std::string text_at(int width) {
  std::ostringstream out;
  print_comparison(out, sample_comparison(), kNames, {.width = width, .color = false});
  return out.str();
}

TEST(ComparisonText, FitsNarrowTerminals) {
  for (const int width : {60, 80, 100}) {
    std::istringstream lines(text_at(width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), width) << line;
  }
}

TEST(ComparisonText, FiguresWithoutAColumnStandBelowTheirCell) {
  EXPECT_THAT(text_at(100), HasSubstr("+25.0 %  1.248 to 1.252"));
  EXPECT_THAT(text_at(90), HasSubstr("+25.0 %\n           ratio 1.248 to 1.252"));
  EXPECT_THAT(text_at(60), HasSubstr("+25.0 %\n           2.00 → 2.50 ms; ratio 1.248 to 1.252"));
}

TEST(ComparisonText, JsonHasEveryCellAndEveryCount) {
  const auto json = comparison_json(sample_comparison(), kNames);
  EXPECT_EQ(json["counts"].size(), std::size(kVerdicts));
  EXPECT_EQ(json["cells"].size(), 10U);
  expect_golden(json.dump(1) + '\n', "comparison.json");
}

TEST(ComparisonText, ThePageHasAPlotAndEveryCell) {
  std::ostringstream out;
  write_comparison_html(out, sample_comparison(), kNames);
  const std::string page = out.str();
  // The style sheet is that of all pages.
  expect_golden(page.substr(page.find("</style>")), "comparison.html");
  // On a narrow screen the plot keeps its size and scrolls.
  EXPECT_THAT(page, HasSubstr(".ratios { display: block; min-width: 640px; }"));
  EXPECT_THAT(page, HasSubstr("<div class=\"scroll\"><svg class=\"ratios\""));
}

/// A ratio of 8 does not stand on the line of 4, as if it were one of 4.
TEST(ComparisonText, RatiosBeyondThePlotAreArrows) {
  const auto page = [](double ratio) {
    std::ostringstream out;
    write_comparison_html(
        out,
        compare_records(std::vector{compared_cell(0, 1)}, std::vector{compared_cell(0, ratio)}, {}),
        kNames);
    return out.str();
  };
  EXPECT_THAT(page(8), ::testing::AllOf(HasSubstr("<path d=\"M"), HasSubstr(">2</text>"),
                                        Not(HasSubstr("<circle"))));
  EXPECT_THAT(page(3), ::testing::AllOf(HasSubstr("<circle"), Not(HasSubstr("<path d=\"M"))));
}

TEST(ComparisonText, ThePageColoursWhatBrokeAndWhatWasFixed) {
  std::ostringstream out;
  write_comparison_html(out, sample_comparison(), kNames);
  for (const auto& [color, verdict] : {std::pair{"bad", "broken"},
                                       {"bad", "slower"},
                                       {"good", "fixed"},
                                       {"good", "faster"},
                                       {"warn", "unclear"},
                                       {"soft", "only_new"}}) {
    EXPECT_THAT(out.str(), HasSubstr(fmt::format("color:var(--{})\">{}<", color, verdict)));
  }
}

TEST(ComparisonText, WhatALineHasNoRoomForStandsBelowIt) {
  EXPECT_THAT(text_at(200),
              HasSubstr(" -                  crash: in forward the process was ended"));
  EXPECT_THAT(text_at(96),
              HasSubstr("\n           crash: in forward the process was ended by signal 11\n"));
  EXPECT_THAT(text_at(60), HasSubstr("\n           4.00 → - ms; crash: in forward the process was\n"
                                     "           ended by signal 11\n"));
}

TEST(ComparisonText, FilesOfTheUsersOwnHaveShortNames) {
  const std::string one = "m.json-0123456789abcdef";
  const auto text = [&](const std::string& other) {
    std::vector<Record> cells{compared_cell(0, 1), compared_cell(0, 1)};
    cells[0].c.mask = one;
    cells[1].c.mask = other;
    std::vector<Record> next = cells;
    for (Record& record : next) record.status = {StatusCode::crash, "gone"};
    const Comparison comparison = compare_records(cells, next, {});
    std::ostringstream out;
    print_comparison(out, comparison, kNames);
    write_comparison_html(out, comparison, kNames);
    return out.str();
  };
  EXPECT_THAT(text("full"), ::testing::AllOf(HasSubstr("  flash m.json 1024 forward "),
                                             HasSubstr("<td>flash m.json 1024 forward</td>"),
                                             Not(HasSubstr(one))));
  EXPECT_THAT(text("m.json-fedcba9876543210"), HasSubstr("  flash " + one + " 1024 forward "))
      << "two files of one name";
}

TEST(ComparisonText, SaysHowManyCellsRanBesideOtherWork) {
  std::vector<Record> base{compared_cell(0, 1), compared_cell(1, 1)};
  const auto text = [&] {
    std::ostringstream out;
    print_comparison(out, compare_records(base, base, {}), kNames);
    return out.str();
  };
  EXPECT_THAT(text(), Not(HasSubstr("host_load")));
  base[0].metrics["host_load"] = 1.25;
  EXPECT_THAT(text(), HasSubstr("1 cell ran beside other work on more than 0.5 of a core"));
}

TEST(ComparisonText, ManyLinesAreCutAndCountedButForBrokenCells) {
  std::vector<Record> base;
  std::vector<Record> next;
  for (std::size_t i = 0; i < 150; ++i) {
    base.push_back(compared_cell(0, 1));
    base.back().c.seed = static_cast<std::int64_t>(i);
    base.back().c.mask = "document";
    base.back().c = canonical(base.back().c);
    if (i >= 70) continue;
    next.push_back(base.back());
    next.back().status = {StatusCode::crash, "gone"};
  }
  std::ostringstream out;
  print_comparison(out, compare_records(base, next, {}), kNames);
  EXPECT_THAT(out.str(), HasSubstr("70 broken, 80 only_base"));
  std::size_t named = 0;
  for (std::size_t at = out.str().find("\nbroken "); at != std::string::npos;
       at = out.str().find("\nbroken ", at + 1)) {
    ++named;
  }
  EXPECT_EQ(named, 70U);
  EXPECT_THAT(out.str(), HasSubstr("and 80 more: 80 only_base; --json has all\n"));
}

/// Cell `i` of a row of cells that differ in their seed.
Record seeded_cell(std::size_t i, double time, int rounds = 5) {
  Record record = compared_cell(0, time, rounds);
  record.c.mask = "document";
  record.c.seed = static_cast<std::int64_t>(i);
  record.c = canonical(record.c);
  return record;
}

TEST(ComparisonText, WhatIsCertainIsListedBeforeWhatIsUnclear) {
  std::vector<Record> base;
  std::vector<Record> next;
  for (std::size_t i = 0; i < 170; ++i) {
    base.push_back(seeded_cell(i, 1));
    // Of one round: a change this small may be one of processes.
    next.push_back(i < 100 ? seeded_cell(i, 1.02, 1) : seeded_cell(i, i < 140 ? 2 : 0.5));
  }
  next.back().status = {StatusCode::crash, "gone"};
  next[99] = seeded_cell(99, 1);
  next[99].metrics["peak_bytes"] = 3e9;
  std::ostringstream out;
  print_comparison(out, compare_records(base, next, {}), kNames);
  const std::string text = out.str();
  EXPECT_THAT(text, HasSubstr("170 cells: 1 broken, 40 slower, 29 faster, 99 unclear, 1 same\n"));
  std::string verdicts;
  std::istringstream lines(text.substr(text.find("\nverdict ") + 1));
  for (std::string line; std::getline(lines, line) && !line.starts_with("and ");) {
    if (!line.starts_with(' ')) verdicts += line.substr(0, 1);
  }
  EXPECT_EQ(verdicts, "vb" + std::string(40, 's') + std::string(29, 'f'));
  EXPECT_THAT(text, HasSubstr("and 100 more: 99 unclear, 1 same; --json has all\n"));
  std::ostringstream page;
  write_comparison_html(page, compare_records(base, next, {}), kNames);
  EXPECT_LT(page.str().rfind(">faster</td>"), page.str().find(">unclear</td>"));
}

TEST(ComparisonText, CellsThatFailAlikeAreCountedByReason) {
  std::vector<Record> cells{seeded_cell(0, 1)};
  for (std::size_t i = 1; i <= 15; ++i) {
    cells.push_back(seeded_cell(i, 1));
    cells.back().metrics = {};
    // One cell of the first reason, two of the second, and so on.
    const std::string reason = i < 2 ? "a" : i < 4 ? "b" : i < 7 ? "c" : i < 11 ? "d" : "e";
    cells.back().status = {StatusCode::unsupported, "reason " + reason};
  }
  std::ostringstream out;
  print_comparison(out, compare_records(cells, cells, {}), kNames);
  EXPECT_THAT(out.str(),
              HasSubstr("16 same\n"
                        "5 of the same have no time in either file: unsupported, reason e\n"
                        "4 of the same have no time in either file: unsupported, reason d\n"
                        "3 of the same have no time in either file: unsupported, reason c\n"
                        "and 2 more reasons of 3 cells\n"));
}

TEST(ComparisonText, WhatStandsAboveTheTableKeepsTheWidth) {
  std::vector<Record> cells{seeded_cell(0, 1), seeded_cell(1, 1)};
  cells[1].metrics = {};
  cells[1].status = {StatusCode::unsupported,
                     "a reason of so many words that no line of this "
                     "width can hold all of it"};
  std::vector<Record> next = cells;
  for (Record& record : next)
    record.env.own()["compiler"] = "GNU 12.2.0 of Debian, with many patches";
  std::ostringstream out;
  print_comparison(out, compare_records(cells, next, {}), kNames, {.width = 50});
  EXPECT_THAT(out.str(), HasSubstr("\n1 of the same has no time in either file:\n        "
                                   "unsupported, a reason of so many words\n        that no line"));
  EXPECT_THAT(out.str(),
              HasSubstr("\ncompiler: - → GNU 12.2.0 of Debian, with many\n        patches\n"));
}

TEST(ComparisonText, NoChangeHasNoSign) {
  EXPECT_EQ(format_change(1.0), "0.0 %");
  EXPECT_EQ(format_change(0.9999), "0.0 %");
  EXPECT_EQ(format_change(0.999), "-0.1 %");
  EXPECT_EQ(format_change(1.001), "+0.1 %");
}

TEST(ComparisonText, CardsAreCountedAndCommitsAreShort) {
  std::vector<Record> base;
  for (const int cards : {1, 2, 4}) {
    base.push_back(seeded_cell(base.size(), 1));
    for (int i = 0; i < cards; ++i) base.back().env.own()["gpus"].push_back({{"model", "H200"}});
    base.back().env.own()["commit"] = "0123456789abcdef0123";
  }
  std::vector<Record> next = base;
  for (Record& record : next) record.env.own()["gpus"] = {{{"model", "H200"}}, {{"model", "H200"}}};
  next[0].env.own()["gpus"].push_back({{"model", "H100"}});
  next[1].env.own()["commit"] = "fedcba9876543210";
  const Comparison comparison = compare_records(base, next, {.across = true});
  EXPECT_THAT(comparison.environment,
              ::testing::ElementsAre(
                  EnvironmentChange{"card", "1, 2 or 4 × H200", "H100 + 2 × H200; 2 × H200"},
                  EnvironmentChange{"commit", "0123456789ab", "0123456789ab, fedcba987654"}));
}

TEST(ComparisonText, HostileTextsStayText) {
  std::vector<Record> next = hostile_records();
  for (Record& record : next) record.status = {StatusCode::crash, kHostileText};
  std::vector<Record> base = next;
  for (Record& record : base) record.env.own()["commit"] = "other";
  const ComparedNames names{kHostileText, kHostileText};
  const Comparison comparison = compare_records(base, next, {.across = true});
  std::ostringstream text;
  print_comparison(text, comparison, names);
  std::ostringstream page;
  write_comparison_html(page, comparison, names);
  for (const std::string& view : {text.str(), page.str()}) {
    EXPECT_THAT(view, Not(HasSubstr("\033")));
    EXPECT_THAT(view, Not(HasSubstr("\u202e")));
  }
  EXPECT_THAT(page.str(), Not(HasSubstr("<script>")));
}

}  // namespace
}  // namespace longca::testing
