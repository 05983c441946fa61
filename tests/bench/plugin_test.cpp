#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "bench/bench_run.h"
#include "bench/running.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string read_text(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return std::move(text).str();
}

TEST(Plugin, TheExampleIsVerifiedAndTimed) {
  const TempDirectory folder;
  const auto out = folder / "example.jsonl";
  const auto result = bench(out, {"--plugin", EXAMPLE_PLUGIN, "-a", "kernel=naive,rowwise", "-a",
                                  "mask=all", "-a", "dtype=float32,bfloat16", "--strict"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  EXPECT_EQ(records.size(), 14U * 2 * 2 * 2);
  for (const Record& record : records) {
    EXPECT_TRUE(record.status.ok()) << record.c.key() << ": " << record.status.reason;
  }
}

TEST(Plugin, ItsKernelsHaveNamesOnlyWithIt) {
  const TempDirectory folder;
  const auto result = bench(folder / "x.jsonl", {"-a", "kernel=rowwise"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("unknown kernel 'rowwise'"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x.jsonl"));
}

TEST(Plugin, AKernelForAnotherDeviceIsFoundInIt) {
  const TempDirectory folder;
  const auto out = folder / "x.jsonl";
  const auto result =
      bench(out, {"--plugin", EXAMPLE_PLUGIN, "-a", "kernel=rowwise", "-a", "device=cuda"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const Record& record : read_records(out).records) {
    EXPECT_THAT(std::string(to_string(record.status.code)),
                ::testing::AnyOf("unavailable", "unsupported"))
        << record.status.reason;
  }
}

/// Exit 2, one sentence, no file.
void expect_refused(const std::string& plugin, const std::string& part,
                    const std::vector<std::string>& more = {}) {
  SCOPED_TRACE(plugin);
  const TempDirectory folder;
  std::vector<std::string> arguments{"--plugin", plugin};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto result = bench(folder / "x.jsonl", arguments, {.timeout_s = 30});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(part));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "x.jsonl"));
}

TEST(Plugin, FilesThatAreNone) {
  const TempDirectory folder;
  expect_refused((folder / "absent.so").string(), "does not exist");
  write_file(folder / "text.so", "this is text");
  expect_refused((folder / "text.so").string(), "cannot be loaded as a shared library");
  expect_refused(folder.path().string(), "cannot be loaded as a shared library");
}

TEST(Plugin, OnesThatFailWhileLoading) {
  const std::string folder = BAD_PLUGINS;
  expect_refused(folder + "/bad_plugin_1.so", "threw while loading: no licence for this kernel");
  expect_refused(folder + "/bad_plugin_2.so",
                 "was compiled for an earlier plug-in interface, this program has ");
  expect_refused(folder + "/bad_plugin_3.so", "without the entry point longca_plugin");
  expect_refused(folder + "/bad_plugin_4.so",
                 "threw while loading: thrown by a static constructor");
  expect_refused(folder + "/bad_plugin_5.so", "while loading");
  expect_refused(folder + "/bad_plugin_6.so", "ended itself with exit code 0 while loading");
}

TEST(Plugin, OneThatDoesNotEndLoadingIsGivenUpWhateverItDoesToSignals) {
  const TempDirectory folder;
  const std::string plugin = (folder / "hangs.so").string();
  fs::copy_file(std::string(BAD_PLUGINS) + "/bad_plugin_7.so", plugin);
  expect_refused(plugin, "did not answer within 2 s", {"--case-limit", "2"});
  EXPECT_TRUE(all_end(plugin)) << "a process outlived its run";
}

/// `header` in the folder that plug-ins are compiled against.
std::string hash_in(const fs::path& include) {
  const std::string text = read_text(include / "attention/api/interface_hash.h");
  const std::size_t begin = text.find('"') + 1;
  return text.substr(begin, text.find('"', begin) - begin);
}

TEST(Plugin, OneThatWasCompiledForOtherHeadersIsRefusedBeforeAnyOfItRuns) {
  const TempDirectory folder;
  const fs::path src = folder / "src", include = folder / "include";
  for (const char* part : {"attention/api", "core", "mask"}) {
    fs::create_directories(src / part);
    fs::copy(fs::path(LONGCA_SOURCE_DIR "/src") / part, src / part);
  }
  std::string header = read_text(src / "attention/api/kernel.h");
  const std::string member = "  bool gqa = true;";
  ASSERT_NE(header.find(member), std::string::npos);
  write_file(src / "attention/api/kernel.h",
             header.replace(header.find(member), 0, "  int added = 0;\n"));
  const auto run = [](const std::vector<std::string>& command) {
    const auto result = run_process(command);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  };
  run({CMAKE_PROGRAM, "-DSOURCE=" + src.string(), "-DINCLUDE=" + include.string(),
       "-DHASH=" + (folder / "hash.h").string(), "-P",
       std::string(LONGCA_SOURCE_DIR) + "/cmake/PluginInterface.cmake"});
  write_file(folder / "plugin.cpp",
             R"(#include "attention/api/plugin.h"
#include <cstdlib>
const int at_load = (std::abort(), 0);
const longca::PluginInfo* longca_plugin() { std::abort(); }
)");
  const std::string plugin = (folder / "plugin.so").string();
  run({CXX_COMPILER, "-std=c++20", "-O0", "-shared", "-fPIC", "-I", include.string(),
       (folder / "plugin.cpp").string(), "-o", plugin});
  EXPECT_NE(hash_in(include), hash_in(PLUGIN_INCLUDE));
  expect_refused(plugin, "plug-in '" + plugin + "' was compiled for plug-in interface " +
                             hash_in(include) + ", this program has " + hash_in(PLUGIN_INCLUDE) +
                             ": compile it again with -I LONGCA/build/release/include, which "
                             "./longca writes\n");
}

TEST(Plugin, TwiceTheSameNameIsRefused) {
  const TempDirectory folder;
  const auto result =
      bench(folder / "x.jsonl", {"--plugin", EXAMPLE_PLUGIN, "--plugin", EXAMPLE_PLUGIN});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("a kernel named 'rowwise' exists already"));
}

}  // namespace
}  // namespace longca::testing
