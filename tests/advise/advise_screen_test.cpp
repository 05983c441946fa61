// What `longca advise` says on a screen: of several problems, and in a width.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/record/record_writer.h"
#include "planted.h"
#include "report/format.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class AdviseScreen : public ::testing::Test {
 protected:
  void SetUp() override {
    RecordWriter writer(file_, RecordWriter::Mode::replace);
    for (const Record& record : advise::testing::planted_records()) writer.append(record);
  }

  ProcessResult advise_from(std::vector<std::string> arguments,
                            const std::string& columns = "100") const {
    arguments.insert(arguments.begin(), {"advise", "--records", file_, "--platform", "h200"});
    return run_longca(
        arguments, {.directory = folder_.path().string(), .environment = {{"COLUMNS", columns}}});
  }

  const TempDirectory folder_;
  const std::string file_ = (folder_ / "planted.jsonl").string();
};

TEST_F(AdviseScreen, AnImpossibleProblemHidesNoOther) {
  const std::vector<std::string> two{"-a", "mask=causal", "-a", "tokens=4K,1024M"};
  const auto table = advise_from(two);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_EQ(table.err, "");
  EXPECT_THAT(table.out, HasSubstr("1  slice"));
  EXPECT_THAT(table.out,
              ContainsRegex("tokens 1024M,[^:]*:8[^:]*: step\n"
                            "  No kernel can do it.\n  cannot:\n      [a-z0-9_]*: one "));
  std::vector<std::string> as_json = two;
  as_json.emplace_back("--json");
  const auto json = nlohmann::json::parse(advise_from(as_json).out);
  for (const auto& choice : json["choices"]) {
    EXPECT_THAT(choice["problem"].get<std::string>(), HasSubstr("tokens=4096"));
  }
  const auto is_refused = [](const auto& entry) {
    return entry["kernel"] == "slice" && entry["problem"].template get<std::string>().find(
                                             "tokens=1073741824") != std::string::npos;
  };
  EXPECT_FALSE(json["choices"].empty());
  EXPECT_TRUE(std::ranges::any_of(json["excluded"], is_refused));
  const auto refused = advise_from({"-a", "mask=causal", "-a", "tokens=512M,1024M"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err,
              HasSubstr("no kernel can do any of the 2 problems; the first is mask=causal"));
}

TEST_F(AdviseScreen, ANumberOfRanksThatTheClusterLacksHidesNoOther) {
  const auto result =
      run_longca({"advise", "--records", file_, "--platform", "h800x8_ib200", "-a", "mask=full",
                  "-a", "tokens=8K", "-a", "scheme=usp", "-a", "ranks=8,2048", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_FALSE(json["choices"].empty());
  ASSERT_FALSE(json["excluded"].empty());
  EXPECT_THAT(json["excluded"].back()["reason"].get<std::string>(),
              HasSubstr("1024 GPUs, and 2048 ranks"));
}

TEST_F(AdviseScreen, AnAxisThatTheMaskDoesNotHaveIsNamed) {
  const auto result = advise_from(
      {"-a", "mask=causal", "-a", "window=5", "-a", "tokens=1K", "-a", "tokens=4K", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("longca: -a window=5 is used by no cell: it is of sliding_"));
  EXPECT_THAT(result.err, HasSubstr("longca: -a tokens is given 2 times: the last one counts, "));
  EXPECT_EQ(advise_from({"-a", "mask=sliding_window_causal", "-a", "window=1K"}).err, "");
}

/// Lines of the text that are wider, except those of one word or one option.
std::string too_wide(const std::string& text, int width) {
  std::string wide;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t word = std::min(line.find_first_not_of(' '), line.size());
    const char* separator = line.compare(word, 1, "-") == 0 ? " -" : " ";
    const bool is_one = line.find(separator, word) == std::string::npos;
    if (columns_of(line) > width && !is_one) wide += line + '\n';
  }
  return wide;
}

TEST_F(AdviseScreen, KeepsToTheWidthOfTheTerminal) {
  const std::vector<std::vector<std::string>> questions{
      {"-a", "mask=causal", "-a", "tokens=6K"},
      {"-a", "mask=causal", "-a", "tokens=64K", "-a", "ranks=8"},
      {"--evaluate"},
      {"-a", "mask=causal", "-a", "tokens=8K", "-a", "scheme=usp", "--gpus", "2"}};
  for (const std::string columns : {"80", "100", "160"}) {
    for (const auto& question : questions) {
      const auto result = advise_from(question, columns);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(too_wide(result.out, std::stoi(columns)), "") << columns;
    }
  }
}

/// What would find out stands on several lines as a shell takes them.
TEST_F(AdviseScreen, TheCommandThatFindsOutCanBePasted) {
  const std::vector<std::string> question{"-a", "mask=causal", "-a", "tokens=6K"};
  const auto table = advise_from(question, "60");
  std::vector<std::string> as_json = question;
  as_json.emplace_back("--json");
  const auto json = nlohmann::json::parse(advise_from(as_json).out);
  const std::string title = "  to find out: ";
  const std::size_t begin = table.out.find(title) + title.size();
  std::string command = table.out.substr(begin, table.out.find("\n\n", begin) - begin);
  EXPECT_THAT(command, HasSubstr(" \\\n"));
  const auto echoed = run_process({"sh", "-c", "echo " + command});
  EXPECT_EQ(echoed.out, json["find_out"][0]["command"].get<std::string>() + "\n");
}

TEST_F(AdviseScreen, BeyondTheMeasuredLengthsItExtrapolates) {
  const std::vector<std::string> beyond{"-a", "mask=causal", "-a", "tokens=64K"};
  EXPECT_THAT(advise_from(beyond).out, HasSubstr("extrapolated beyond the measured lengths"));
  std::vector<std::string> as_json = beyond;
  as_json.emplace_back("--json");
  const auto choice = nlohmann::json::parse(advise_from(as_json).out)["choices"][0];
  EXPECT_EQ(choice["basis"], "interpolated") << "the key's value stays";
  EXPECT_EQ(choice["situation"], "beyond the measured lengths");
}

}  // namespace
}  // namespace longca::testing
