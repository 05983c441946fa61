#include "bench/run/memory_watch.h"

#include <gtest/gtest.h>

namespace longca {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

TEST(MemoryWatch, CountsWhatIsPrinted) {
  EXPECT_EQ(memory_excess(100 * kMib, 0, 512 * kMib, 0), "");
  EXPECT_EQ(memory_excess(512 * kMib, 200 * kMib, 512 * kMib, 200 * kMib), "");
  EXPECT_EQ(memory_excess(713 * kMib, 0, 512 * kMib, 200 * kMib),
            "passed the memory limit of 512 MiB");
  EXPECT_EQ(memory_excess(512 * kMib, 201 * kMib, 512 * kMib, 200 * kMib),
            "passed the memory limit of 512 MiB with the 201 MiB that it printed");
}

TEST(MemoryWatch, BoundsWhatIsPrintedWhateverTheLimit) {
  EXPECT_EQ(memory_excess(0, kMaxPrinted, 8192 * kMib, 0), "");
  EXPECT_EQ(memory_excess(0, kMaxPrinted + 1, 8192 * kMib, 0),
            "printed more than the 256 MiB that are kept");
}

}  // namespace
}  // namespace longca
