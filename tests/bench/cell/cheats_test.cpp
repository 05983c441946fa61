// Kernels that are right when they are verified and do less work when they are timed: `wrong` in
// every mode and pass, and those around them that do their work are `ok`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/bench_run.h"

namespace longca::testing {
namespace {

constexpr const char* kCheats[] = {"filled", "address", "samples", "early",
                                   "odd",    "third",   "halves"};

void expect_wrong(const Record& record) {
  EXPECT_EQ(to_string(record.status.code), "wrong")
      << record.c.key() << " " << record.status.reason;
  EXPECT_THAT(record.status.reason, ::testing::HasSubstr("in a repetition with other inputs: "));
  EXPECT_FALSE(record.metrics.contains("time_ms")) << record.c.key();
  EXPECT_LT(record.metrics.at("error_o"), 0.01) << "of the first call, which was right";
}

TEST(Cheats, InCppAreWrong) {
  const TempDirectory folder;
  const auto file = folder / "cheats.jsonl";
  std::string kernels = "naive,flash,cheat_not";
  for (const char* name : kCheats) kernels += std::string(",cheat_") + name;
  const ProcessResult result = bench(
      file, {"--plugin", CHEAT_PLUGIN, "-a", "kernel=" + kernels, "-a", "dtype=all", "-a",
             "mode=burst,sustained", "-a", "mask=causal,full", "-a", "heads=4:2", "-a", "dim=64"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Record> records = read_records(file).records;
  int cheats = 0;
  for (const Record& record : records) {
    if (record.c.kernel.starts_with("cheat_") && record.c.kernel != "cheat_not") {
      ++cheats;
      expect_wrong(record);
    } else {
      EXPECT_TRUE(record.status.ok()) << record.c.key() << " " << record.status.reason;
      EXPECT_GT(record.metrics.at("time_ms"), 0);
    }
  }
  constexpr int kDtypes = 3, kModes = 2, kMasks = 2, kPasses = 2;
  EXPECT_EQ(cheats, 7 * kDtypes * kModes * kMasks * kPasses);
}

TEST(Cheats, InPythonAreWrong) {
#ifdef LONGCA_SANITIZED
  GTEST_SKIP() << "the system's Python cannot load a library built with sanitizers";
#endif
  const auto run = [](const std::string& cheat) {
    const TempDirectory folder;
    const auto file = folder / "cheats.jsonl";
    const ProcessResult result =
        bench(file,
              {"--plugin", PYTHON_CHEATS, "-a", "kernel=cheat", "-a", "tokens=8", "-a", "heads=4:2",
               "-a", "dim=64", "-a", "mode=burst,sustained"},
              {.environment = {{"LONGCA_CHEAT", cheat}, {"LONGCA_EXAMPLE", PYTHON_EXAMPLE}}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    auto records = read_records(file).records;
    EXPECT_EQ(records.size(), 4U);
    return records;
  };
  for (const Record& record : run("honest")) {
    EXPECT_TRUE(record.status.ok()) << record.c.key() << " " << record.status.reason;
  }
  for (const char* cheat : kCheats) {
    SCOPED_TRACE(cheat);
    for (const Record& record : run(cheat)) expect_wrong(record);
  }
}

}  // namespace
}  // namespace longca::testing
