#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_directory.h"

// The set-up behind ./longca and ./test, tried on a program of five lines that is built in a
// second. Nothing is installed: LONGCA_NO_INSTALL.
namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr const char* kProgram = R"(#include <cstdio>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::printf("<%s>", argv[i]);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) std::putchar(c);
  return 3;
}
)";

constexpr const char* kBuild = R"(cmake_minimum_required(VERSION 3.25)
project(small CXX)
enable_testing()
add_executable(longca apps/longca/main.cpp)
set_target_properties(longca PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/apps/longca)
add_test(NAME ends COMMAND longca)
set_tests_properties(ends PROPERTIES WILL_FAIL ON)
)";

/// A checkout in a folder whose name has a blank, with the real scripts.
class Setup : public ::testing::Test {
 protected:
  Setup() : checkout_(directory_ / "the checkout") {
    for (const char* folder : {"apps/longca", "cmake", "src", "scripts"}) {
      fs::create_directories(checkout_ / folder);
    }
    const fs::path source = LONGCA_SOURCE_DIR;
    for (const char* file : {"longca", "test", "CMakePresets.json", "scripts/setup",
                             "scripts/packages.txt", "scripts/python_packages.txt"}) {
      fs::copy_file(source / file, checkout_ / file);
    }
    write_file(checkout_ / "apps/longca/main.cpp", kProgram);
    write_file(checkout_ / "CMakeLists.txt", kBuild);
  }

  static ProcessResult run(const fs::path& program, std::vector<std::string> arguments = {},
                           const std::string& input = "") {
    arguments.insert(arguments.begin(), program.string());
    return run_process(arguments, {.input = input,
                                   .environment = {{"LONGCA_NO_INSTALL", "1"},
                                                   {"LONGCA_PROGRESS_SECONDS", "0.3"}}});
  }

  TempDirectory directory_;
  fs::path checkout_;
};

TEST_F(Setup, TheFirstStartBuildsAndRuns) {
  const auto first = run(checkout_ / "longca", {"a b", "c"}, "input");
  EXPECT_EQ(first.exit_code, 3);
  EXPECT_EQ(first.out, "<a b><c>input");
  EXPECT_THAT(first.err, HasSubstr("longca: building"));
}

TEST_F(Setup, ALongBuildSaysHowFarItIs) {
  const std::string slow_build = std::string(kBuild) +
                                 "add_custom_target(first COMMAND true)\n"
                                 "add_custom_target(slow COMMAND sleep 1.5)\n"
                                 "add_dependencies(slow first)\n"  // one step is done meanwhile
                                 "add_dependencies(longca slow)\n";
  write_file(checkout_ / "CMakeLists.txt", slow_build);
  const auto first = run(checkout_ / "longca");
  EXPECT_EQ(first.exit_code, 3);
  EXPECT_THAT(first.err, ContainsRegex("longca: built [0-3]/[0-9]+ after [0-9]+ s"));
}

TEST_F(Setup, TheSecondStartSaysNothing) {
  run(checkout_ / "longca");
  const auto link = directory_ / "link";
  fs::create_symlink(checkout_ / "longca", link);
  for (const auto& program : {checkout_ / "longca", link}) {
    const auto second = run(program, {"x"});
    EXPECT_EQ(second.out, "<x>") << program;
    EXPECT_EQ(second.err, "") << program;
  }
}

TEST_F(Setup, AChangedSourceIsBuilt) {
  run(checkout_ / "longca");
  std::string changed = kProgram;
  changed.replace(changed.find("return 3"), 8, "return 4");
  write_file(checkout_ / "apps/longca/main.cpp", changed);
  EXPECT_EQ(run(checkout_ / "longca").exit_code, 4);
}

TEST_F(Setup, AFailedBuildIsTriedAgain) {
  write_file(checkout_ / "apps/longca/main.cpp", "an error\n");
  for (int start = 0; start < 2; ++start) {
    const auto failed = run(checkout_ / "longca");
    EXPECT_EQ(failed.exit_code, 69);
    EXPECT_EQ(failed.out, "");
    EXPECT_THAT(failed.err, HasSubstr("longca: the build failed"));
  }
  write_file(checkout_ / "apps/longca/main.cpp", kProgram);
  EXPECT_EQ(run(checkout_ / "longca").exit_code, 3);
}

TEST_F(Setup, WithoutCudaLastsUntilTheNextStart) {
  write_file(checkout_ / "CMakeLists.txt", std::string(kBuild) +
                                               "target_compile_definitions(longca PRIVATE "
                                               "CODE=$<IF:$<BOOL:${LONGCA_CUDA}>,4,5>)\n");
  write_file(checkout_ / "apps/longca/main.cpp", "int main() { return CODE; }\n");
  const auto program = checkout_ / "build/release/apps/longca/longca";
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(run(checkout_ / "scripts/setup", {"--without-cuda"}).exit_code, 0);
    EXPECT_EQ(run(program).exit_code, 5);
    EXPECT_EQ(run(checkout_ / "longca").exit_code, 4);
  }
}

TEST_F(Setup, StartsAtTheSameTimeWaitForEachOther) {
  std::vector<std::future<ProcessResult>> starts;
  for (int i = 0; i < 3; ++i) {
    starts.push_back(
        std::async(std::launch::async, [this] { return run(checkout_ / "longca", {"x"}); }));
  }
  int builds = 0;
  for (auto& start : starts) {
    const auto result = start.get();
    EXPECT_EQ(result.out, "<x>") << result.err;
    builds += result.err.find("longca: building") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(builds, 1);
}

TEST_F(Setup, ACheckoutThatMovedIsBuiltAnew) {
  run(checkout_ / "longca");
  const auto moved = directory_ / "moved";
  fs::rename(checkout_, moved);
  const auto result = run(moved / "longca", {"x"});
  EXPECT_EQ(result.out, "<x>");
  EXPECT_THAT(result.err, HasSubstr("was made for another folder"));
  EXPECT_EQ(run(moved / "longca").err, "");
}

TEST_F(Setup, TestEndsWithTheSummaryOfCtest) {
  const auto result = run(checkout_ / "test");
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr("100% tests passed, 0 tests failed out of 1"));
  EXPECT_NE(run(checkout_ / "test", {"-R", "no_such_test"}).exit_code, 0);
  const auto unknown = run(checkout_ / "test", {"--preset", "realease"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("'realease'"));
}

}  // namespace
}  // namespace longca::testing
