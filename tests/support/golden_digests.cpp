#include "support/golden_digests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "support/temp_directory.h"

namespace longca::testing {
namespace {

constexpr std::size_t kMaxNamed = 20;

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string(value) == "1";
}

/// 32 bits tell cases apart well enough and keep the files small.
std::string text_of(std::uint64_t digest) {
  return digest == 0 ? "-" : fmt::format("{:08x}", static_cast<std::uint32_t>(digest));
}

std::vector<std::string> digests_of(const GoldenCase& golden) {
  std::vector<std::string> texts;
  for (const std::uint64_t digest : golden.digests) texts.push_back(text_of(digest));
  return texts;
}

/// The lines of a file, case → digests.
std::map<std::string, std::vector<std::string>> read_cases(const std::string& text) {
  std::map<std::string, std::vector<std::string>> cases;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with('#') || colon == std::string::npos) continue;
    std::istringstream words(line.substr(colon + 2));
    std::vector<std::string>& digests = cases[line.substr(0, colon)];
    for (std::string word; words >> word;) digests.push_back(word);
  }
  return cases;
}

}  // namespace

void expect_golden_digests(const std::string& name, const std::vector<std::string>& columns,
                           const std::vector<GoldenCase>& cases) {
  const std::filesystem::path path = std::filesystem::path(LONGCA_GOLDEN_DIR) / "plans" / name;
  if (is_set("LONGCA_UPDATE_GOLDEN")) {
    std::string text = fmt::format("# case: {}\n", fmt::join(columns, " "));
    for (const GoldenCase& golden : cases) {
      text += fmt::format("{}: {}\n", golden.name, fmt::join(digests_of(golden), " "));
    }
    write_file(path, text);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << ": write it with LONGCA_UPDATE_GOLDEN=1";
  auto expected = read_cases(read_file(path));
  std::vector<std::string> differing;
  for (const GoldenCase& golden : cases) {
    std::vector<std::string> known = std::move(expected[golden.name]);
    expected.erase(golden.name);
    const std::vector<std::string> actual = digests_of(golden);
    known.resize(columns.size(), "(none)");
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (known[i] != actual.at(i)) {
        differing.push_back(
            fmt::format("{}, {}: {} is now {}", golden.name, columns[i], known[i], actual[i]));
      }
    }
  }
  for (const auto& [gone, digests] : expected) differing.push_back(gone + ": no such case now");
  const std::size_t count = differing.size();
  if (count > kMaxNamed) differing.resize(kMaxNamed);
  EXPECT_EQ(count, 0U) << path << " differs in " << count << " cases:\n  "
                       << fmt::format("{}", fmt::join(differing, "\n  "))
                       << "\nIf this is meant: LONGCA_UPDATE_GOLDEN=1";
}

bool golden_full() {
  return is_set("LONGCA_GOLDEN_FULL");
}

}  // namespace longca::testing
