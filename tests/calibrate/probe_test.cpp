#include "calibrate/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/error.h"

namespace longca::calibrate {
namespace {

using ::testing::HasSubstr;

std::string probe_refusal(const std::string& text) {
  try {
    parse_probe(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Probe, ComesBackFromItsText) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    for (const Probe& probe : standard_probes(kind, std::int64_t{8} << 30)) {
      EXPECT_EQ(parse_probe(to_text(probe)), probe) << to_text(probe);
    }
  }
  EXPECT_EQ(to_text({ProbeWhat::copy, 65536, MeasureMode::burst}), "copy:65536:burst");
}

TEST(Probe, RefusesOtherTexts) {
  EXPECT_THAT(probe_refusal("copy"), HasSubstr("is not WHAT:SIZE:MODE"));
  EXPECT_THAT(probe_refusal("copy:1"), HasSubstr("is not WHAT:SIZE:MODE"));
  EXPECT_THAT(probe_refusal("move:1:burst"), HasSubstr("'move' in the probe"));
  EXPECT_THAT(probe_refusal("copy:1:graph"), HasSubstr("'graph' in the probe"));
  for (const char* size : {"", "0", "-1", "1.5", "1K", "99999999999999999999"}) {
    EXPECT_THAT(probe_refusal("copy:" + std::string(size) + ":burst"), HasSubstr("the size '"));
  }
}

TEST(Probe, CopiesFitIntoMemory) {
  const auto largest = [](DeviceKind kind, std::int64_t free_bytes) {
    std::int64_t bytes = 0;
    for (const Probe& probe : standard_probes(kind, free_bytes)) {
      if (probe.what == ProbeWhat::copy) bytes = std::max(bytes, probe.size);
    }
    return bytes;
  };
  EXPECT_EQ(largest(DeviceKind::cuda, std::int64_t{80} << 30), std::int64_t{1} << 30);
  EXPECT_EQ(largest(DeviceKind::cpu, std::int64_t{80} << 30), std::int64_t{256} << 20);
  EXPECT_EQ(largest(DeviceKind::cpu, std::int64_t{400} << 20), std::int64_t{100} << 20);
}

TEST(Probe, OnlyAGpuLaunches) {
  const auto launches = [](DeviceKind kind) {
    return std::ranges::count(standard_probes(kind, std::int64_t{1} << 30), ProbeWhat::launch,
                              &Probe::what);
  };
  EXPECT_EQ(launches(DeviceKind::cpu), 0);
  EXPECT_EQ(launches(DeviceKind::cuda), 2);
}

}  // namespace
}  // namespace longca::calibrate
