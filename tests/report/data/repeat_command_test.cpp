#include "report/data/repeat_command.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "bench/suite/axes.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"

namespace longca::testing {
namespace {

/// The case that a command asks for: what its -a arguments say.
Case case_of(const std::string& command) {
  std::istringstream words(command);
  std::string word;
  Case c;
  while (words >> word) {
    if (word != "-a") continue;
    words >> word;
    AxisValues values;
    parse_axis_argument(word, values);
    for (const auto& [name, list] : values) find_axis(name).assign(c, list.at(0));
  }
  return canonical(c);
}

TEST(RepeatCommand, AsksForTheVeryCase) {
  const std::vector<Record> runs[] = {sample_records(), sparse_records(), selected_records(),
                                      over_ranks_records(), two_kernels_records()};
  for (const std::vector<Record>& records : runs) {
    for (const Record& record : records) {
      EXPECT_EQ(case_of(repeat_command(record).text()).key(), canonical(record.c).key());
    }
  }
}

TEST(RepeatCommand, NamesTheVerb) {
  EXPECT_EQ(repeat_command(sample_records()[0]).text().find("longca bench -a kernel=naive "), 0U);
  EXPECT_EQ(repeat_command(over_ranks_records()[0]).text().find("longca cp -a "), 0U);
}

TEST(RepeatCommand, SaysThePlatformAndModeOfASimulatedCell) {
  Record record = over_ranks_records()[0];
  record.c.mode = "simulated";
  record.c.platform = "h200x8";
  EXPECT_EQ(repeat_command(record).text().find("longca simulate --platform h200x8 -a "), 0U);
  EXPECT_EQ(repeat_command(record).text().find("mode"), std::string::npos);
  record.c.simulated_mode = "sustained";
  EXPECT_NE(repeat_command(record).text().find(" -a mode=sustained"), std::string::npos);
  EXPECT_EQ(repeat_command(record).text().find("simulated_mode"), std::string::npos);
}

TEST(RepeatCommand, CellsOfEqualWorkShareTheirPart) {
  const std::vector<Record> records = sample_records();
  EXPECT_EQ(repeat_command(records[0]).problem, repeat_command(records[1]).problem);
  EXPECT_NE(repeat_command(records[0]).row, repeat_command(records[1]).row);
}

TEST(RepeatCommand, TextsCannotAddToTheCommand) {
  EXPECT_EQ(shell_quoted("kernel=fa3"), "kernel=fa3");
  EXPECT_EQ(shell_quoted("kernel=a; rm -r $HOME"), "'kernel=a; rm -r $HOME'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace longca::testing
