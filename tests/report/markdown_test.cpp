#include "report/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/golden.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

std::string markdown(std::span<const Record> records) {
  std::ostringstream out;
  write_markdown(out, records);
  return out.str();
}

/// Pipes that end cells: those without a backslash before them.
std::size_t cells_of(const std::string& line) {
  std::size_t pipes = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '|') {
      ++pipes;
    }
  }
  return pipes;
}

TEST(Markdown, Golden) {
  expect_golden(markdown(sample_records()), "records.md");
}

/// Cells over ranks and on one device.
std::vector<Record> both_kinds() {
  std::vector<Record> records = over_ranks_records();
  const std::vector<Record> single = one_device_records();
  records.insert(records.end(), single.begin(), single.end());
  return records;
}

TEST(Markdown, OverRanksGolden) {
  expect_golden(markdown(both_kinds()), "ranks.md");
}

TEST(Markdown, EveryRowOfATableHasItsColumns) {
  std::vector<Record> records = sample_records();
  records.erase(records.begin() + 5);  // a kernel without its backward cell
  const std::vector<Record> over_ranks = both_kinds();
  records.insert(records.end(), over_ranks.begin() + 1, over_ranks.end());
  std::istringstream lines(markdown(records));
  std::size_t wanted = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) {
      wanted = 0;
    } else if (wanted == 0) {
      wanted = cells_of(line);
    } else {
      EXPECT_EQ(cells_of(line), wanted) << line;
    }
  }
}

TEST(Markdown, MarkupInTextsStaysText) {
  std::vector<Record> records = {sample_records()[0]};
  records[0].c.kernel = "a`b|c";
  records[0].status = {StatusCode::crash, "<b> [x](y) *z* _u_ | next"};
  const std::string text = markdown(records);
  EXPECT_THAT(text, ::testing::HasSubstr(R"(`a'b\|c`)"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"(\<b\> \[x\]\(y\) \*z\* \_u\_ \| next)"));
}

}  // namespace
}  // namespace longca::testing
