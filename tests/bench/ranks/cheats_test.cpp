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

TEST(RankCheats, AreWrongInEveryModeAndPass) {
  const TempDirectory folder;
  const auto out = folder / "cheats.jsonl";
  std::string kernels = "naive,cheat_not";
  for (const char* name : kCheats) kernels += std::string(",cheat_") + name;
  const ProcessOptions options{.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                               {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                               {"OMPI_MCA_rmaps_base_oversubscribe", "1"}},
                               .timeout_s = 280};
  const ProcessResult result =
      run_longca({"cp",    "cp_quick",          "--plugin",     CHEAT_PLUGIN,
                  "--out", out.string(),        "--time-limit", "0.01",
                  "-a",    "mask=causal",       "-a",           "tokens=128",
                  "-a",    "heads=4:2",         "-a",           "dim=32",
                  "-a",    "ranks=2",           "-a",           "scheme=ulysses,ring_p2p",
                  "-a",    "shard=contiguous",  "-a",           "mode=burst,sustained",
                  "-a",    "kernel=" + kernels, "-a",           "pass=forward,backward"},
                 options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  int cheats = 0;
  for (const Record& record : read_records(out).records) {
    if (record.c.kernel == "naive" || record.c.kernel == "cheat_not") {
      EXPECT_TRUE(record.status.ok()) << record.c.key() << " " << record.status.reason;
      continue;
    }
    ++cheats;
    EXPECT_EQ(to_string(record.status.code), "wrong")
        << record.c.key() << " " << record.status.reason;
    EXPECT_FALSE(record.metrics.contains("time_ms")) << record.c.key();
  }
  EXPECT_EQ(cheats, 7 * 2 * 2 * 2);
}

}  // namespace
}  // namespace longca::testing
