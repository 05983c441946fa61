#include "bench/run/dry_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/thread_pool.h"

namespace longca::testing {
namespace {

/// Replaces the number (or word) and the spaces before `end` of each line that has it by "#".
std::string without_memory(const std::string& line, const std::string& end) {
  const std::size_t at = line.rfind(end);
  if (at == std::string::npos || at == 0) return line;
  const std::size_t space = line.find_last_of(' ', at - 1);
  const std::size_t before = line.find_last_not_of(' ', space);
  return line.substr(0, before + 1) + " #" + line.substr(at);
}

/// With "#" for the estimates of memory: the reference's share of them is not this test's matter.
std::string dry_run(const std::string& suite) {
  std::ostringstream out;
  const Suite parsed = parse_suite(suite, "s.toml");
  print_dry_run(out, expand(parsed, kListedCells), size_of(parsed), parsed.limits);
  std::istringstream lines(out.str());
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    line += '\n';
    for (const char* end : {"  axes", "  seed", " MiB\n"}) line = without_memory(line, end);
    text += line;
  }
  return text;
}

TEST(DryRun, ListsCellsWithFlopsAndMemory) {
  // 4 · area · hq · d: full 64² and causal 64 · 65 / 2 cells, 4 heads, 32 dimensions; backward 2.5
  // times.
  EXPECT_EQ(
      dry_run(R"(
[axes]
kernel = "naive"
mask = ["full", "causal"]
tokens = 1024
heads = "4:2"
dim = 32
dtype = ["float32"]
[[exceptions]]
when = { mask = "causal", pass = "backward" }
skip = "not today"
)"),
      "kernel  mask    tokens  heads  dim  dtype    pass      GFLOP #  axes\n"
      "naive   full      1024  4:2    32   float32  forward   0.537 #  seed=42 device=cpu "
      "mode=burst\n"
      "naive   full      1024  4:2    32   float32  backward  1.342 #  seed=42 device=cpu "
      "mode=burst\n"
      "naive   causal    1024  4:2    32   float32  forward   0.269 #  seed=42 device=cpu "
      "mode=burst\n"
      "3 cells of 2 problems, 2.148 GFLOP once through, at most # MiB\n" +
          fmt::format("at least {:.0f} s here, where each cell is timed for 1 s and each problem "
                      "verified for 10 s of CPU time; inputs, plans, and 7 repetitions that take "
                      "longer come on top\n",
                      3 * 1 + 2 * 10.0 / available_cpus()) +
          "1 left out by the suite: not today\n");
}

/// Tensors of 1024 · (4 + 2) rows of 64 float32 values and an lse of 4 · 1024 are 1.5 MiB.
TEST(DryRun, EstimatesTheReferenceOnlyWhereTheTensorsFit) {
  const auto listed = [](const std::string& run) {
    const Suite suite = parse_suite(
        "[axes]\nkernel = \"naive\"\nmask = \"full\"\ntokens = 1024\nheads = \"4:2\"\n"
        "dim = 32\ndtype = \"float32\"\npass = \"forward\"\n" +
            run,
        "s.toml");
    std::ostringstream out;
    print_dry_run(out, expand(suite), size_of(suite), suite.limits);
    return out.str();
  };
  EXPECT_THAT(listed("[run]\nmemory_limit_mib = 1\n"), ::testing::HasSubstr(", at most 1.5 MiB\n"));
  EXPECT_THAT(listed("[run]\nmemory_limit_mib = 2\n"),
              ::testing::Not(::testing::HasSubstr(", at most 1.5 MiB\n")));
}

TEST(DryRun, SaysWhatWillNotRun) {
  EXPECT_THAT(dry_run("[axes]\nkernel = \"block_sparse\"\nmask = \"causal\"\n"),
              ::testing::HasSubstr("unsupported: block_sparse takes block-sparse masks only"));
}

TEST(DryRun, SaysWhichModesWillNotRun) {
  EXPECT_THAT(dry_run("[axes]\nkernel = \"naive\"\nmode = \"graph\"\n"),
              ::testing::AllOf(::testing::HasSubstr("unsupported: mode graph replays a CUDA graph"),
                               ::testing::HasSubstr("none of them can run here")));
}

}  // namespace
}  // namespace longca::testing
