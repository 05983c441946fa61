#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/golden.h"
#include "report/markdown.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string section(const std::vector<Record>& records) {
  std::ostringstream out;
  write_sparse_markdown(out, compare_with_dense(records));
  return out.str();
}

TEST(SparseMarkdown, Golden) {
  expect_golden(section(joined(sparse_records(), selected_records())), "sparse.md");
}

TEST(SparseMarkdown, EveryRowOfATableHasItsColumns) {
  std::vector<Record> records = joined(sparse_records(), selected_records());
  records.erase(records.begin() + 9);  // a kernel without one of its densities
  std::istringstream lines(section(records));
  std::ptrdiff_t wanted = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto pipes = std::count(line.begin(), line.end(), '|');
    if (!line.starts_with('|')) {
      wanted = 0;
    } else if (wanted == 0) {
      wanted = pipes;
    } else {
      EXPECT_EQ(pipes, wanted) << line;
    }
  }
}

TEST(SparseMarkdown, IsPartOfTheWhole) {
  const auto whole = [](const std::vector<Record>& records) {
    std::ostringstream out;
    write_markdown(out, records);
    return out.str();
  };
  EXPECT_THAT(whole(sparse_records()), HasSubstr(section(sparse_records())));
  EXPECT_THAT(whole(sample_records()), Not(HasSubstr("beside dense")));
}

TEST(SparseMarkdown, NamesInputsThatDifferFromTheDenseCells) {
  std::vector<Record> records = sparse_records();
  EXPECT_THAT(section(records), Not(HasSubstr(", inputs normal")));
  for (Record& record : records) {
    if (record.c.density) record.c.inputs = "clustered";
  }
  EXPECT_THAT(section(records), HasSubstr(" TFLOP/s, inputs normal |"));
}

TEST(SparseMarkdown, NamesStayText) {
  std::vector<Record> records = sparse_records();
  for (Record& record : records) {
    if (record.c.kernel == "flex" || record.c.kernel == "fa3") record.c.kernel += "|a`b\n";
  }
  EXPECT_THAT(section(records), HasSubstr(R"(| `flex\|a'b\n` |)"));
  EXPECT_THAT(section(records), HasSubstr(R"(dense: `fa3\|a'b\n`, `full`)"));
}

}  // namespace
}  // namespace longca::testing
