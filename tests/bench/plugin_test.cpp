#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/bench_run.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

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

/// Exit 2, one sentence, no file.
void expect_refused(const std::string& plugin, const std::string& part) {
  SCOPED_TRACE(plugin);
  const TempDirectory folder;
  const auto result = bench(folder / "x.jsonl", {"--plugin", plugin});
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
                 "was built for version 7 of the plug-in interface, this program has 2");
  expect_refused(folder + "/bad_plugin_3.so", "without the entry point longca_plugin");
  expect_refused(folder + "/bad_plugin_4.so",
                 "threw while loading: thrown by a static constructor");
  expect_refused(folder + "/bad_plugin_5.so", "while loading");
  expect_refused(folder + "/bad_plugin_6.so", "ended itself with exit code 0 while loading");
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
