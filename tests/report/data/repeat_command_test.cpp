#include "report/data/repeat_command.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/suite/axes.h"
#include "mask/own_lengths.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"
#include "support/temp_directory.h"

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

Record simulated_on(const std::string& platform, const std::vector<std::string>& options) {
  Record record = over_ranks_records()[0];
  record.c.mode = "simulated";
  record.c.platform = platform;
  nlohmann::json argv = {"longca", "simulate"};
  for (const std::string& word : options) argv.push_back(word);
  record.env = nlohmann::json{{"argv", argv}};
  return record;
}

/// Of the command, what stands before the axes.
std::string verb_of(const Record& record) {
  const std::string text = repeat_command(record).text();
  return text.substr(0, text.find(" -a "));
}

TEST(RepeatCommand, TakesThePageFiguresAndRecordsOfTheRun) {
  EXPECT_EQ(verb_of(simulated_on("mine-own0123abcd",
                                 {"--platform", "a b/mine.toml", "--set", "nic_gbps=200",
                                  "--set=node.gpus=4", "--rates=r.jsonl", "--against", "m.jsonl"})),
            "longca simulate --platform 'a b/mine.toml' --set nic_gbps=200 --set node.gpus=4 "
            "--rates r.jsonl --against m.jsonl");
  EXPECT_EQ(verb_of(simulated_on("h200x8", {"--platform=h200x8"})),
            "longca simulate --platform h200x8");
}

/// A record whose environment was left out has its notes and the platform's name.
TEST(RepeatCommand, NamesWhatTheRecordDoesNotHave) {
  Record record = simulated_on("h200x8_ib400-set0123abcd", {});
  record.notes["set"] = "nic_gbps=200 node.gpus=4";
  EXPECT_EQ(verb_of(record),
            "longca simulate --platform h200x8_ib400 --set nic_gbps=200 --set node.gpus=4");
  record.c.platform = "mine-own0123abcd";
  EXPECT_EQ(
      verb_of(record),
      "longca simulate --platform mine-own0123abcd.toml --set nic_gbps=200 --set node.gpus=4");
  record.notes["page"] = "mine.toml";
  record.notes.erase("set");
  EXPECT_EQ(verb_of(record), "longca simulate --platform mine.toml");
}

TEST(RepeatCommand, NamesOwnFilesAsTheRunDid) {
  Record record = sample_records()[0];
  record.c.lengths = "docs.txt-0123456789abcdef";
  EXPECT_NE(repeat_command(record).text().find(" -a lengths=docs.txt "), std::string::npos)
      << "nothing says where it is";
  record.env = nlohmann::json{{"argv", {"longca", "bench", "-a", "lengths=pile,own/docs.txt"}}};
  EXPECT_NE(repeat_command(record).text().find(" -a lengths=own/docs.txt "), std::string::npos);
  record.c.lengths = "my_docs.txt-0123456789abcdef";
  record.env = nlohmann::json{{"argv", {"longca", "bench", "-a", "lengths=my docs.txt"}}};
  EXPECT_NE(repeat_command(record).text().find(" -a 'lengths=my docs.txt' "), std::string::npos);
  record.c.mask = "m.json-0123456789abcdef";
  EXPECT_NE(repeat_command(record).text().find(" -a mask=m.json "), std::string::npos);

  const TempDirectory folder;
  write_file(folder / "docs.txt", "100\n200\n");
  record.c.lengths = add_own_lengths(folder / "docs.txt");
  EXPECT_NE(
      repeat_command(record).text().find(" -a lengths=" + (folder / "docs.txt").string() + " "),
      std::string::npos);
  add_own_lengths("docs.txt:3-0123456789abcdef", OwnLengths{folder / "docs.txt", {100}, 100});
  record.c.lengths = "docs.txt:3-0123456789abcdef";
  EXPECT_NE(repeat_command(record).text().find(" -a lengths=docs.txt:3 "), std::string::npos)
      << "a line of the file, not all of it";
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
