#pragma once

#include <gtest/gtest.h>

#include "core/device.h"

namespace longca::testing {

/// A test on the GPU, skipped with the reason where there is none.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Support& gpu = Device::available(DeviceKind::cuda); !gpu.ok()) {
      GTEST_SKIP() << gpu.reason;
    }
  }
  static Device& gpu() { return Device::get(DeviceKind::cuda); }
};

}  // namespace longca::testing
