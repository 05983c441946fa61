#include "report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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
    std::istringstream lines(table(all_mask_records(), width));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns(line), static_cast<std::size_t>(width)) << line;
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
      if (line.find("formula") != line.npos) continue;
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
