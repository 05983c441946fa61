#include "calibrate/probe_work.h"

#include <gtest/gtest.h>

#include "calibrate/probe_worker.h"
#include "core/error.h"

namespace longca::calibrate {
namespace {

void expect_verifies(const Probe& probe) {
  const auto work = make_probe_work(probe, DeviceKind::cpu);
  work->poison();
  EXPECT_FALSE(work->is_right(1)) << to_text(probe) << " without a call";
  work->call();
  EXPECT_TRUE(work->is_right(1)) << to_text(probe);
}

TEST(ProbeWork, CopiesAllBytes) {
  for (const std::int64_t bytes : {1, 63, 65536, 1'000'001})
    expect_verifies({ProbeWhat::copy, bytes});
}

TEST(ProbeWork, ProductsAreRight) {
  for (const std::int64_t rows : {256, 512}) expect_verifies({ProbeWhat::product, rows});
}

TEST(ProbeWork, RefusesWhatTheCpuHasNot) {
  EXPECT_THROW(make_probe_work({ProbeWhat::launch, 1}, DeviceKind::cpu), InputError);
  EXPECT_THROW(make_probe_work({ProbeWhat::product, 100}, DeviceKind::cpu), InputError);
}

TEST(ProbeWork, ATimeIsThatOfItsProbe) {
  const Probe probe{ProbeWhat::copy, 65536};
  const ProbeTime time = run_probe(probe, DeviceKind::cpu, 0.01);
  EXPECT_EQ(time.probe, probe);
  EXPECT_GT(time.ms, 0);
}

}  // namespace
}  // namespace longca::calibrate
