#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/printable.h"
#include "report/golden.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"
#include "report/table.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string table(const std::vector<Record>& records, const TableOptions& options = {}) {
  std::ostringstream out;
  print_sparse_table(out, compare_with_dense(records), options);
  return out.str();
}

std::vector<Record> all_records() {
  return joined(sparse_records(), selected_records());
}

TEST(SparseTable, Golden) {
  expect_golden(table(all_records(), {.width = 140}), "sparse_table.txt");
}

TEST(SparseTable, NarrowGolden) {
  expect_golden(table(all_records(), {.width = 80}), "sparse_table_80.txt");
}

TEST(SparseTable, LessImportantColumnsGiveWay) {
  for (const int width : {80, 100, 120, 140}) {
    std::istringstream lines(table(sparse_records(), {.width = width}));
    for (std::string line; std::getline(lines, line);) {
      const auto letters = std::count_if(line.begin(), line.end(),
                                         [](unsigned char c) { return (c & 0xc0) != 0x80; });
      EXPECT_LE(letters, width) << line;
    }
  }
}

TEST(SparseTable, AColumnOnlyWhereSomethingWasMeasured) {
  EXPECT_THAT(table(sparse_records()), Not(HasSubstr("total")));
  EXPECT_THAT(table(sparse_records()), Not(HasSubstr("kept mass")));
  EXPECT_THAT(table(all_records(), {.width = 140}), HasSubstr("total"));
}

TEST(SparseTable, KernelsWithoutANumberHaveNoRow) {
  const std::string text = table(sparse_records());
  const std::string gqa = text.substr(0, text.find("heads 64:64"));
  EXPECT_THAT(gqa, HasSubstr("slice"));
  EXPECT_THAT(gqa, Not(HasSubstr("vsa")));
  EXPECT_THAT(text, HasSubstr("vsa"));
}

TEST(SparseTable, NamesInputsThatDifferFromTheDenseCells) {
  std::vector<Record> records = sparse_records();
  EXPECT_THAT(table(records), Not(HasSubstr(", inputs normal")));
  for (Record& record : records) {
    if (record.c.density) record.c.inputs = "clustered";
  }
  EXPECT_THAT(table(records), HasSubstr(" GiB, inputs normal\n"));
}

TEST(SparseTable, MarksTiesAsOtherTablesDo) {
  std::vector<Record> records = sparse_records();
  for (Record& record : records) {
    if (record.c.density && record.status.ok()) record.metrics["time_ms"] = 100;
  }
  const std::string text = table(records);
  for (const char* kernel : {"slice", "flex", "naive"}) {
    const std::string row = text.substr(text.find(kernel, text.find(" ms, ")));
    EXPECT_EQ(std::ranges::count(row.substr(0, row.find('\n')), '*'), 3) << kernel;
  }
  EXPECT_THAT(text, HasSubstr("\n*              fastest of its mask, length and density, or a tie "
                              "with it: within 1 %, or 95 %\n               intervals overlap\n"));
}

TEST(SparseTable, HostileTextsStayOnTheirLine) {
  const std::string hostile = "\n\033[31m";
  const auto table_with = [](const std::string& suffix) {
    std::vector<Record> records = sparse_records();
    for (Record& record : records) {
      if (record.c.kernel == "flex" || record.c.kernel == "fa3") record.c.kernel += suffix;
    }
    return table(records);
  };
  EXPECT_EQ(table_with(hostile), table_with(printable(hostile)));
  EXPECT_THAT(table_with(hostile), Not(HasSubstr("\033")));
}

TEST(SparseTable, NothingWithoutTables) {
  EXPECT_EQ(table(sample_records()), "");
}

}  // namespace
}  // namespace longca::testing
