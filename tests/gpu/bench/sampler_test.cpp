#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "bench/measure/gpu_sampler.h"
#include "gpu/gpu_test.h"

namespace longca::testing {
namespace {

using ::testing::Each;
using ::testing::Gt;
using namespace std::chrono_literals;

class CudaSampler : public GpuTest {};

TEST_F(CudaSampler, WritesClockPowerAndTemperature) {
  if (Nvml::get() == nullptr) GTEST_SKIP() << "no NVML";
  Record record;
  GpuSampler sampler(gpu().properties().pci_bus_id);
  std::this_thread::sleep_for(150ms);
  sampler.finish(record);
  ASSERT_TRUE(record.trace);
  EXPECT_GE(record.trace->t_ms.size(), 3U);
  EXPECT_THAT(record.trace->sm_clock_mhz, Each(Gt(0.0)));
  EXPECT_THAT(record.trace->power_w, Each(Gt(0.0)));
  EXPECT_GT(record.metrics.at("sm_clock_mhz"), 0.0);
  EXPECT_GT(record.metrics.at("power_w"), 0.0);
  EXPECT_GT(record.metrics.at("temperature_c"), 0.0);
}

TEST_F(CudaSampler, TakesOneSampleOfWhatIsShort) {
  if (Nvml::get() == nullptr) GTEST_SKIP() << "no NVML";
  Record record;
  GpuSampler(gpu().properties().pci_bus_id).finish(record);
  ASSERT_TRUE(record.trace);
  EXPECT_EQ(record.trace->t_ms.size(), 1U);
}

TEST_F(CudaSampler, NvmlKnowsTheDevice) {
  if (Nvml::get() == nullptr) GTEST_SKIP() << "no NVML";
  EXPECT_NE(Nvml::get()->find(gpu().properties().pci_bus_id), nullptr);
  ASSERT_FALSE(Nvml::get()->gpus().empty());
  EXPECT_EQ(Nvml::get()->gpus().front().model, gpu().properties().name);
  EXPECT_GT(Nvml::get()->gpus().front().memory_bytes.value_or(0), std::int64_t{1} << 30);
  EXPECT_TRUE(Nvml::get()->driver_version());
}

}  // namespace
}  // namespace longca::testing
