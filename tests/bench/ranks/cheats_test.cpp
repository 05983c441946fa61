// Kernels that are right when they are verified and do less work when they are timed: `wrong` over
// ranks as on one device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/record/record.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

constexpr const char* kCheats[] = {"filled", "address", "samples", "early",
                                   "odd",    "third",   "halves"};

/// Cells of a few ms over two ranks.
std::vector<Record> run_ranks(const std::vector<std::string>& more) {
  const TempDirectory folder;
  const auto out = folder / "ranks.jsonl";
  std::vector<std::string> arguments{"cp",           "cp_quick",
                                     "--out",        out.string(),
                                     "--time-limit", "0.01",
                                     "-a",           "heads=4:2",
                                     "-a",           "dim=32",
                                     "-a",           "ranks=2",
                                     "-a",           "pass=forward,backward"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProcessResult result =
      run_longca(arguments, {.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                             {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                             {"OMPI_MCA_rmaps_base_oversubscribe", "1"}},
                             .timeout_s = 280});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return read_records(out).records;
}

TEST(RankCheats, AreWrongInEveryModeAndPass) {
  std::string kernels = "naive,cheat_not";
  for (const char* name : kCheats) kernels += std::string(",cheat_") + name;
  int cheats = 0;
  for (const Record& record :
       run_ranks({"--plugin", CHEAT_PLUGIN, "-a", "mask=causal", "-a", "tokens=128", "-a",
                  "scheme=ulysses,ring_p2p", "-a", "shard=contiguous", "-a", "mode=burst,sustained",
                  "-a", "kernel=" + kernels})) {
    if (record.c.kernel == "naive" || record.c.kernel == "cheat_not") {
      EXPECT_TRUE(record.status.ok()) << record.c.key() << " " << record.status.reason;
      continue;
    }
    ++cheats;
    EXPECT_EQ(to_string(record.status.code), "wrong")
        << record.c.key() << " " << record.status.reason;
    EXPECT_THAT(record.status.reason, ::testing::HasSubstr("in a repetition with other inputs: "));
    EXPECT_FALSE(record.metrics.contains("time_ms")) << record.c.key();
  }
  EXPECT_EQ(cheats, 7 * 2 * 2 * 2);
}

/// Of a kernel that adds in a fixed order every call gives the verified bits: what is compared are
/// results wherever a plan leaves them (ulysses: the lse by heads), and no padding (129 tokens).
TEST(RankResults, KeepTheirBitsInEverySchemeAndShard) {
  const auto records =
      run_ranks({"-a", "mask=causal,document", "-a", "tokens=129", "-a", "scheme=all", "-a",
                 "shard=published,best", "-a", "kernel=naive"});
  int ok = 0;
  for (const Record& record : records) {
    if (!record.status.ok()) continue;
    ++ok;
    EXPECT_FALSE(record.notes.contains("other bits"))
        << record.c.key() << " " << record.notes.at("other bits");
  }
  EXPECT_GE(ok, 2 * 2 * 6);
}

}  // namespace
}  // namespace longca::testing
