#include "report/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "support/temp_directory.h"

namespace longca::testing {
namespace {

std::string first_difference(const std::string& expected, const std::string& actual) {
  std::istringstream expected_lines(expected);
  std::istringstream actual_lines(actual);
  for (int number = 1;; ++number) {
    std::string e;
    std::string a;
    const bool has_expected = static_cast<bool>(std::getline(expected_lines, e));
    const bool has_actual = static_cast<bool>(std::getline(actual_lines, a));
    if (!has_expected && !has_actual) return "only the ends of lines differ";
    if (e != a || has_expected != has_actual) {
      return "line " + std::to_string(number) +
             "\n  expected: " + (has_expected ? e : "(no line)") +
             "\n  actual:   " + (has_actual ? a : "(no line)");
    }
  }
}

}  // namespace

void expect_golden(const std::string& text, const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(LONGCA_GOLDEN_DIR) / "report" / name;
  const char* update = std::getenv("LONGCA_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    write_file(path, text);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << ": write it with LONGCA_UPDATE_GOLDEN=1";
  const std::string expected = read_file(path);
  EXPECT_TRUE(text == expected) << path << " differs at " << first_difference(expected, text)
                                << "\nIf this is meant: LONGCA_UPDATE_GOLDEN=1";
}

}  // namespace longca::testing
