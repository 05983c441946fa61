#include "core/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "core/tensor.h"

namespace longca {
namespace {

TEST(MemoryTracker, CountsWhatIsHeldAndTheMost) {
  MemoryTracker tracker;
  void* a = tracker.allocate(1000);
  void* b = tracker.allocate(500);
  EXPECT_EQ(tracker.bytes_in_use(), 1500);
  tracker.deallocate(a, 1000);
  EXPECT_EQ(tracker.bytes_in_use(), 500);
  EXPECT_EQ(tracker.peak_bytes(), 1500);
  tracker.reset_peak();
  EXPECT_EQ(tracker.peak_bytes(), 500);
  tracker.deallocate(b, 500);
}

TEST(MemoryTracker, RefusesWhatPassesTheLimitAndCountsNothing) {
  MemoryTracker tracker;
  tracker.set_limit(1 << 20);
  EXPECT_THROW(tracker.allocate((1 << 20) + 1), OutOfMemory);
  EXPECT_EQ(tracker.bytes_in_use(), 0);
  void* p = tracker.allocate(1 << 20);
  EXPECT_THROW(tracker.allocate(1), OutOfMemory);
  tracker.deallocate(p, 1 << 20);
}

TEST(MemoryTracker, AlignsForSimdAndHugePages) {
  MemoryTracker tracker;
  for (const std::int64_t bytes : {0LL, 1LL, 63LL, 4096LL, 5LL << 20}) {
    void* p = tracker.allocate(bytes);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 64, 0U);
    std::memset(p, 1, static_cast<std::size_t>(bytes));
    tracker.deallocate(p, bytes);
  }
}

TEST(PartsOfAnAllocation, BeginAtMultiplesOf256Bytes) {
  EXPECT_EQ(aligned(0), 0);
  EXPECT_EQ(aligned(1), 256);
  EXPECT_EQ(aligned(256), 256);
  EXPECT_EQ(aligned(257), 512);
}

TEST(HostBuffer, MovesWithoutCountingTwice) {
  const std::int64_t before = MemoryTracker::host().bytes_in_use();
  {
    HostBuffer a(4096);
    HostBuffer b = std::move(a);
    HostBuffer c;
    c = std::move(b);
    EXPECT_EQ(MemoryTracker::host().bytes_in_use(), before + 4096);
  }
  EXPECT_EQ(MemoryTracker::host().bytes_in_use(), before);
}

TEST(HostTensor, RowsLieWhereTheStridesSay) {
  const HostTensor tensor(DType::float32, 5, 3, 7);
  EXPECT_EQ(tensor.bytes(), 5 * 3 * 7 * 4);
  EXPECT_EQ(tensor.view().row<float>(2, 1), tensor.view().row<float>(0, 0) + 2 * 21 + 7);
}

}  // namespace
}  // namespace longca
