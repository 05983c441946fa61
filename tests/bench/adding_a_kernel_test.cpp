// docs/guide/adding-a-kernel.md, followed to the letter: its files are written as the page shows
// them, its commands run in a directory where LONGCA is this checkout.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "bench/bench_run.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return std::move(text).str();
}

/// The page's blocks of code in `language`, without the indent of lists.
std::vector<std::string> blocks(const std::string& language) {
  std::istringstream page(read(LONGCA_SOURCE_DIR "/docs/guide/adding-a-kernel.md"));
  std::vector<std::string> found;
  bool inside = false;
  std::size_t indent = 0;
  for (std::string line; std::getline(page, line);) {
    const std::size_t begin = line.find("```");
    if (!inside && begin != std::string::npos && line.substr(begin) == "```" + language) {
      inside = true;
      indent = begin;
      found.emplace_back();
    } else if (inside && begin != std::string::npos) {
      inside = false;
    } else if (inside) {
      found.back() += line.substr(std::min(indent, line.size())) + '\n';
    }
  }
  return found;
}

class AddingAKernel : public ::testing::Test {
 protected:
  /// What the commands find: a checkout that ./longca has built, named LONGCA.
  void SetUp() override {
#ifdef LONGCA_SANITIZED
    GTEST_SKIP() << "what the page builds has no sanitizers";
#endif
    const fs::path checkout = folder_ / "LONGCA";
    fs::create_directories(checkout / "build/release");
    fs::create_directory_symlink(PLUGIN_INCLUDE, checkout / "build/release/include");
    fs::create_directory_symlink(LONGCA_SOURCE_DIR "/examples", checkout / "examples");
    write_file(checkout / "longca", "#!/bin/sh\nexec " LONGCA_PROGRAM " \"$@\"\n");
    fs::permissions(checkout / "longca", fs::perms::owner_all);
  }

  void run(const std::string& commands) {
    SCOPED_TRACE(commands);
    const auto result = run_process({"sh", "-ec", commands},
                                    {.directory = folder_.path().string(), .timeout_s = 240});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_THAT(result.out + result.err, ::testing::Not(HasSubstr("wrong")));
  }

  TempDirectory folder_;
};

TEST_F(AddingAKernel, AsAPluginInCpp) {
  run(blocks("sh").at(0));
}

TEST_F(AddingAKernel, AsAPluginInPython) {
  write_file(folder_ / "mine.py", blocks("python").at(0));
  run(blocks("sh").at(1));
  run(blocks("sh").at(2));
}

/// The kernel's file and the line that adds it, made a plug-in so that the program stays as it is.
TEST_F(AddingAKernel, InTheTree) {
  const std::string built_in = read(LONGCA_SOURCE_DIR "/src/attention/built_in_kernels.cpp");
  const std::size_t macro = built_in.find("#define LONGCA_ADD_KERNEL");
  ASSERT_NE(macro, std::string::npos);
  const std::size_t end = built_in.find("\n\n", macro);
  write_file(folder_ / "mine.cpp", blocks("cpp").at(0));
  write_file(
      folder_ / "plugin.cpp",
      "#include \"attention/api/plugin.h\"\nnamespace longca {\n" +
          built_in.substr(macro, end - macro) + "\nvoid add(KernelRegistry& registry) {\n" +
          blocks("cpp").at(1) +
          "}\n}\nconst longca::PluginInfo* longca_plugin() {\n"
          "  static const longca::PluginInfo info{.name = \"mine\", .add_kernels = longca::add};\n"
          "  return &info;\n}\n");
  run(CXX_COMPILER
      " -std=c++20 -O1 -Wall -Wextra -Werror -shared -fPIC -I LONGCA/build/release/include "
      "mine.cpp plugin.cpp -o mine.so");
  run(std::regex_replace(blocks("sh").at(3), std::regex("./longca check"),
                         "LONGCA/longca check --plugin ./mine.so"));
}

}  // namespace
}  // namespace longca::testing
