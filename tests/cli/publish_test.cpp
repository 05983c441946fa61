// scripts/publish: what the pages say is what the committed records say, and it finds where not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kRoot = LONGCA_SOURCE_DIR;

ProcessResult publish(std::vector<std::string> arguments) {
  std::vector<std::string> command{(kRoot / "scripts/publish").string(), "--longca",
                                   program_of_tests()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_process(command, {.timeout_s = 300});
}

/// A page with one block.
std::string page_of(const TempDirectory& folder, const std::string& what, const std::string& text) {
  const auto page = folder / "page.md";
  write_file(page, "Before\n\n<!-- published: " + what + " -->\n" + text + "After\n");
  return page;
}

TEST(Publish, PagesSayWhatTheRecordsSay) {
  const auto result = publish({"--check"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err
                                 << "scripts/publish writes the tables anew";
}

TEST(Publish, FindsAChangedDigitAndMendsIt) {
  const TempDirectory folder;
  const auto page = page_of(folder, "statuses results/h200/slice_backward.jsonl.gz",
                            "\n166 cells: 131 `ok`, 36 `unsupported`.\n\n<!-- /published -->\n");
  const auto found = publish({"--check", page});
  EXPECT_EQ(found.exit_code, 1);
  EXPECT_THAT(found.out, HasSubstr("-166 cells: 131 `ok`"));
  EXPECT_THAT(found.out, HasSubstr("+166 cells: 130 `ok`"));
  EXPECT_THAT(read_file(page), HasSubstr("131")) << "--check writes nothing";
  EXPECT_EQ(publish({page}).exit_code, 0);
  EXPECT_EQ(read_file(page),
            "Before\n\n<!-- published: statuses results/h200/slice_backward.jsonl.gz -->\n\n"
            "166 cells: 130 `ok`, 36 `unsupported`.\n\n<!-- /published -->\nAfter\n");
  EXPECT_EQ(publish({"--check", page}).exit_code, 0);
}

TEST(Publish, RefusesWhatItCannotMakeInOneSentence) {
  struct Wrong {
    std::string what, text, message;
  };
  const std::string end = "<!-- /published -->\n";
  const std::string file = " results/h200/slice.jsonl.gz";
  const std::string beside = "beside results/h200/field.jsonl.gz";
  const Wrong cases[] = {
      {"leadres" + file, end, "there is no table 'leadres'; there are advice, answer, beside,"},
      {"leaders results/absent.jsonl", end, "there is no file results/absent.jsonl"},
      {"traces results/absent.json to=absent.svg", end, "there is no file results/absent.json"},
      {"terminal absent.txt to=absent.svg commands=ls", end, "there is no file absent.txt"},
      {"leaders" + file + " mask=cuasal", end, "causal"},
      {"leaders" + file + " tokens", end, "AXIS=VALUES"},
      {"leaders" + file, end, "differ in deterministic (0, 1): name one"},
      {"statuses" + file, "", "a block does not end"},
      {beside + " sustained=results/absent.jsonl", end, "there is no file results/absent.jsonl"},
      {beside + " sustained=results/h200/field.jsonl.gz", end, "no record has mode 'sustained'"},
      {beside + " sustained=results/h200/sustained.jsonl.gz", end, "both passes of full: name one"},
  };
  for (const Wrong& wrong : cases) {
    const TempDirectory folder;
    const auto result = publish({page_of(folder, wrong.what, wrong.text)});
    EXPECT_EQ(result.exit_code, 2) << wrong.what;
    EXPECT_THAT(result.err, HasSubstr(wrong.message)) << wrong.what;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

}  // namespace
}  // namespace longca::testing
