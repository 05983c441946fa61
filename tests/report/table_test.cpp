#include "report/table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

#include "report/golden.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string table(std::span<const Record> records, int width = 100, bool color = false) {
  std::ostringstream out;
  print_table(out, records, {width, color});
  return out.str();
}

/// Columns that a line takes on a terminal; all our letters take one.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

void expect_lines_within(int width, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(columns(line), static_cast<std::size_t>(width)) << line;
  }
}

TEST(Table, ShowsEveryStatus) {
  expect_golden(table(sample_records()), "table.txt");
}

TEST(Table, DropsColumnsThatDoNotFit) {
  expect_golden(table(sample_records(), 80), "table_80.txt");
  expect_golden(table(sample_records(), 60), "table_60.txt");
}

TEST(Table, ShowsAllMasks) {
  expect_golden(table(all_mask_records()), "table_all_masks.txt");
}

TEST(Table, FitsItsWidth) {
  for (const int width : {80, 90, 100, 120}) {
    expect_lines_within(width, table(all_mask_records(), width));
    expect_lines_within(width, table(sample_records(), width));
    expect_lines_within(width, table(over_ranks_records(), width));
    expect_lines_within(width, table(two_kernels_records(), width));
  }
}

TEST(Table, WhatStandsAboveAndBelowFitsTerminalsTooNarrowForRows) {
  for (const int width : {40, 60}) {
    for (const auto& records : {sample_records(), over_ranks_records()}) {
      const std::string text = table(records, width);
      expect_lines_within(width, text.substr(0, text.find("\n\n")));
      const std::string legend = text.substr(text.rfind("\n\n"));
      EXPECT_THAT(legend, HasSubstr("fastest of its mask"));
      expect_lines_within(width, legend);
    }
  }
}

TEST(Table, ColoursOnlyWhenAsked) {
  EXPECT_THAT(table(sample_records(), 100, false), Not(HasSubstr("\033")));
  EXPECT_THAT(table(sample_records(), 100, true), HasSubstr("\033[31m"));
}

TEST(Table, UsesTeraflopsForFastMachines) {
  std::vector<Record> records = sample_records();
  for (Record& record : records) {
    if (record.metrics.contains("tflops")) record.metrics["tflops"] *= 4000;
  }
  EXPECT_THAT(table(records), HasSubstr("TFLOP/s"));
  EXPECT_THAT(table(records), Not(HasSubstr("GFLOP/s")));
}

TEST(Table, SetsApartWhatVariesForOneMask) {
  std::vector<Record> records = sample_records();
  std::vector<Record> half = sample_records();
  for (Record& record : half) record.c.dtype = DType::bfloat16;
  records.insert(records.end(), half.begin(), half.end());
  EXPECT_THAT(table(records), HasSubstr("\ndtype float32\n"));
  EXPECT_THAT(table(records), HasSubstr("\ndtype bfloat16\n"));
}

TEST(Table, NamesWhatVariesBetweenMasksBesideTheMask) {
  std::vector<Record> records = all_mask_records();
  for (Record& record : records) {
    if (record.c.mask == "sliding_window") record.c.window = 100;
  }
  EXPECT_THAT(table(records, 140), HasSubstr("sliding_window (window 100)"));
}

TEST(Table, TheLastRecordOfACellCounts) {
  std::vector<Record> records = {sample_records()[0], sample_records()[0]};
  records[1].status = {StatusCode::crash, "the second run"};
  records[1].metrics.clear();
  EXPECT_THAT(table(records), HasSubstr("1 cell: 1 crash"));
}

TEST(Table, ControlCharactersDoNotReachTheTerminal) {
  std::vector<Record> records = {sample_records()[0]};
  records[0].c.kernel = "evil\033[2J";
  records[0].status = {StatusCode::crash, "a\033]0;title\007\nb"};
  EXPECT_THAT(table(records), Not(HasSubstr("\033")));
  EXPECT_THAT(table(records), HasSubstr("a\\x1b]0;title\\x07\\nb"));
}

TEST(Table, AnIntervalThatIsTooWideIsSaid) {
  std::vector<Record> records = {sample_records()[0]};
  records[0].metrics["time_ci_pct"] = 3.21;
  EXPECT_THAT(table(records), Not(HasSubstr("±")));
  records[0].stop = "time_limit";
  EXPECT_THAT(table(records), HasSubstr("±3.2%~"));
  EXPECT_THAT(table(records), HasSubstr("±       half the 95 % interval of the time over the "
                                        "repetitions\n"));
  records.push_back(sample_records()[1]);
  records[1].metrics["time_ci_pct"] = 0.4;
  records[1].rounds_ms = {{1.0}, {1.01}};
  EXPECT_THAT(table(records), HasSubstr("±0.4% "));
  EXPECT_THAT(table(records), HasSubstr("over the rounds, or of one round over the repetitions\n"));
}

TEST(Table, TimesAreMoreThanTheirIntervals) {
  const std::string text = table(sample_records(), 80);
  EXPECT_THAT(text, HasSubstr("  550.5~\n"));
  EXPECT_THAT(text, HasSubstr("\nleft out at 80 columns: memory, error, ± (--csv"));
}

TEST(Table, NamesTheColumnsThatDoNotFit) {
  EXPECT_THAT(table(sample_records(), 120), Not(HasSubstr("left out")));
  EXPECT_THAT(table(sample_records(), 60), HasSubstr("\nleft out at 60 columns: "));
  EXPECT_THAT(
      table(over_ranks_records(), 80),
      HasSubstr("\nleft out at 80 columns: exposed ms, memory, imbal., error, sent (--csv and\n"
                "        --html have them)\n"));
}

TEST(Table, LeavesRoomForAStatusOnlyWhereACellHasOne) {
  std::vector<Record> records = all_mask_records();
  std::erase_if(records, [](const Record& record) { return !record.status.ok(); });
  expect_lines_within(63, table(records, 63));
}

TEST(Table, LeavesOutNoColumnThatNoRecordHas) {
  std::vector<Record> records = sample_records();
  for (Record& record : records) {
    std::erase_if(record.metrics, [](const auto& metric) {
      return metric.first == "peak_bytes" || metric.first.starts_with("error_");
    });
  }
  EXPECT_THAT(table(records, 60), HasSubstr("\nleft out at 60 columns: ±, ms (--csv"));
  const std::string wide = table(records, 120);
  EXPECT_THAT(wide, Not(HasSubstr("memory  ")));
  EXPECT_THAT(wide, Not(HasSubstr("error   ")));
}

TEST(Table, SaysThatMemoryIsOfAPassThatARowLacks) {
  std::vector<Record> records;
  for (const Record& record : sample_records()) {
    if (record.c.kernel == "flash" || record.c.pass == Pass::forward) records.push_back(record);
  }
  constexpr const char* kGaps = "\nmemory  backward peak; - for a row without that pass\n";
  EXPECT_THAT(table(records, 120), HasSubstr(kGaps));
  EXPECT_THAT(table(sample_records(), 120), Not(HasSubstr(kGaps)));
}

TEST(Table, OriginsKeepTheWidth) {
  std::vector<Record> records = sample_records();
  for (std::size_t i = 0; i < 8; ++i) {
    records[i].env.own()["commit"] = std::string(12, static_cast<char>('a' + i));
  }
  const std::string text = table(records, 80);
  const std::size_t start = text.find("\n9 origins, ") + 1;
  std::istringstream lines(text.substr(start, text.find("\n\n", start) - start));
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(columns(line), 80U) << line;
    EXPECT_THAT(line, ::testing::StartsWith(count++ == 0 ? "9 origins" : "  "));
  }
  EXPECT_GT(count, 3);
}

/// A terminal as standard output, and the environment, until it goes.
class FakeTerminal {
 public:
  explicit FakeTerminal(int width) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    ::grantpt(master_);
    ::unlockpt(master_);
    terminal_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    winsize size{};
    size.ws_col = static_cast<unsigned short>(width);
    ::ioctl(terminal_, TIOCSWINSZ, &size);
    std::fflush(stdout);
    ::dup2(terminal_, STDOUT_FILENO);
  }
  ~FakeTerminal() {
    ::dup2(stdout_, STDOUT_FILENO);
    for (const int file : {stdout_, terminal_, master_}) ::close(file);
  }

 private:
  int stdout_ = ::dup(STDOUT_FILENO);
  int master_;
  int terminal_ = -1;
};

/// The options on a terminal of this width, with these variables; nullptr: not set.
TableOptions on_terminal(int width, const char* columns, const char* term,
                         const char* no_color = nullptr) {
  const auto set = [](const char* name, const char* value) {
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  };
  std::map<const char*, std::optional<std::string>> before;
  for (const char* name : {"COLUMNS", "TERM", "NO_COLOR"}) {
    if (const char* value = std::getenv(name))
      before[name] = value;
    else
      before[name] = std::nullopt;
  }
  set("COLUMNS", columns);
  set("TERM", term);
  set("NO_COLOR", no_color);
  TableOptions options;
  {
    const FakeTerminal terminal(width);
    options = terminal_table_options();
  }
  for (const auto& [name, value] : before) set(name, value ? value->c_str() : nullptr);
  return options;
}

TEST(TerminalOptions, TheWidthIsThatOfColumnsElseOfTheTerminal) {
  EXPECT_EQ(on_terminal(123, nullptr, "xterm").width, 123);
  EXPECT_EQ(on_terminal(123, "88", "xterm").width, 88);
  EXPECT_EQ(on_terminal(123, "none", "xterm").width, 123);
  EXPECT_EQ(on_terminal(0, nullptr, "xterm").width, 100);
}

TEST(TerminalOptions, ADumbTerminalHasNoColours) {
  EXPECT_TRUE(on_terminal(80, nullptr, "xterm").color);
  EXPECT_FALSE(on_terminal(80, nullptr, "dumb").color);
  EXPECT_FALSE(on_terminal(80, nullptr, nullptr).color);
}

TEST(TerminalOptions, AProcessOfALaunchHasNoColours) {
  for (const char* rank : {"0", "1"}) {
    ::setenv("OMPI_COMM_WORLD_RANK", rank, 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    EXPECT_FALSE(on_terminal(80, nullptr, "xterm").color) << rank;
  }
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_TRUE(on_terminal(80, nullptr, "xterm").color);
}

TEST(TerminalOptions, NoColorCountsUnlessItIsEmpty) {
  EXPECT_FALSE(on_terminal(80, nullptr, "xterm", "1").color);
  EXPECT_FALSE(on_terminal(80, nullptr, "xterm", "0").color);
  EXPECT_TRUE(on_terminal(80, nullptr, "xterm", "").color);
}

TEST(Table, ALongValueOfAnAxisIsBroken) {
  std::vector<Record> records = sample_records();
  const std::string word(30, 'a');
  for (Record& record : records) record.c.lengths = fmt::format("{0} {0} {0}", word);
  EXPECT_THAT(table(records, 60), HasSubstr("\nlengths " + word + "\n  " + word + "\n  " + word +
                                            " · seed 42 · window 256\n"));
}

TEST(RanksTable, ColumnsOfExposedTimeStayApart) {
  std::vector<Record> records = over_ranks_records();
  records[1].metrics["exposed_comm_ms"] = -0.000352;
  records[1].metrics["time_ms"] = 0.00001;
  EXPECT_THAT(table(records, 300), HasSubstr(" -0.000352 -3520% "));
}

TEST(RanksTable, SaysWhatWasSimulated) {
  std::vector<Record> records = over_ranks_records();
  EXPECT_THAT(table(records), HasSubstr("Over ranks: "));
  records[0].c.platform = "h100x8_ib400";
  EXPECT_THAT(table(records), HasSubstr("Over ranks, in part simulated on h100x8_ib400: "));
  for (Record& record : records) record.c.platform = "h100x8_ib400";
  EXPECT_THAT(table(records), HasSubstr("Over ranks, simulated on h100x8_ib400: "));
}

TEST(RanksTable, NegativeExposedTimeIsSaidToBeNoise) {
  std::vector<Record> records = over_ranks_records();
  for (Record& record : records) record.metrics["exposed_comm_ms"] = 0.01;
  EXPECT_THAT(table(records, 160), Not(HasSubstr("noise")));
  records[0].metrics["exposed_comm_ms"] = -0.01;
  EXPECT_THAT(table(records, 160), HasSubstr("ms and share; below 0: noise\n"));
  EXPECT_THAT(table(records, 80), HasSubstr("ranks' steps; below 0:\n        noise\n"));
}

TEST(RanksTable, Golden) {
  expect_golden(table(over_ranks_records(), 160), "ranks_table.txt");
  expect_golden(table(over_ranks_records(), 80), "ranks_table_80.txt");
}

TEST(RanksTable, FitsItsWidth) {
  for (const int width : {80, 100, 120, 160}) {
    std::vector<Record> records = over_ranks_records();
    for (Record& record : records) record.status.reason.clear();  // sentences are not broken
    std::istringstream lines(table(records, width));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("formula 1572864") != line.npos) continue;
      EXPECT_LE(columns(line), static_cast<std::size_t>(width)) << line;
    }
  }
}

TEST(RanksTable, FollowsTheTableOfOneDevice) {
  std::vector<Record> records = over_ranks_records();
  const std::vector<Record> single = one_device_records();
  records.insert(records.end(), single.begin(), single.end());
  const std::string text = table(records, 120);
  EXPECT_THAT(text, ::testing::StartsWith("On one device: 6 cells: 6 ok\n"));
  EXPECT_THAT(text, HasSubstr("\nOver ranks: 48 cells: 43 ok, 4 unsupported, 1 crash\n"));
}

TEST(RanksTable, BytesAreHeldToTheFormulaToTheByte) {
  std::vector<Record> records = {over_ranks_records()[16]};
  ASSERT_EQ(records[0].c.ranks, 2);
  EXPECT_THAT(table(records, 160), HasSubstr("1.0 MiB ="));
  records[0].metrics["bytes_sent"] += 1;
  EXPECT_THAT(table(records, 160), HasSubstr("1.0 MiB ≠"));
  EXPECT_THAT(table(records, 160), HasSubstr("sent 1048577, formula 1048576\n"));
  records[0].metrics.erase("bytes_formula");
  EXPECT_THAT(table(records, 160), Not(HasSubstr("formula 1048576")));
}

TEST(RanksTable, KernelsHaveAColumnWhereTheyDiffer) {
  std::vector<Record> records = over_ranks_records();
  EXPECT_THAT(table(records), HasSubstr("\nkernel flash · "));
  records[0].c.kernel = "naive";
  EXPECT_THAT(table(records), HasSubstr("  scheme             kernel  "));
}

TEST(Table, SaysWhenThereIsNothing) {
  EXPECT_EQ(table({}), "no records\n");
}

}  // namespace
}  // namespace longca::testing
