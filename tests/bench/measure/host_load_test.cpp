#include "bench/measure/host_load.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "support/temp_directory.h"

namespace longca::testing {
namespace {

TEST(HostLoad, BusyTicksAreAllButIdleAndWaiting) {
  EXPECT_EQ(busy_ticks("cpu  100 20 3 9999 8888 7 6 50 1 1\ncpu0 1 2 3 4 5 6 7 8 9 10\n"), 186.0);
}

TEST(HostLoad, OtherTextsSayNothing) {
  EXPECT_EQ(busy_ticks(""), std::nullopt);
  EXPECT_EQ(busy_ticks("cpu0 1 2 3 4 5 6 7 8"), std::nullopt);
  EXPECT_EQ(busy_ticks("cpu 1 2 3 4 5 6 7"), std::nullopt);
  EXPECT_EQ(busy_ticks("cpu 1 2 three 4 5 6 7 8"), std::nullopt);
}

TEST(HostLoad, IsWhatOthersUsed) {
  const TempDirectory folder;
  const std::string stat = (folder.path() / "stat").string();
  std::ofstream(stat) << "cpu 100 0 0 0 0 0 0 0\n";
  const auto begin = std::chrono::steady_clock::now();
  const HostLoad load(stat);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::ofstream(stat) << "cpu 200 0 0 0 0 0 0 0\n";  // one second at 100 ticks per second
  Record record;
  load.finish(record);
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_EQ(record.metrics.count("host_load"), 1U);
  EXPECT_GT(record.metrics["host_load"], 0.5 / passed);
  EXPECT_LE(record.metrics["host_load"], 1.0 / 0.05);
}

TEST(HostLoad, IsAbsentWhereNothingCanBeRead) {
  const HostLoad load("/nonexistent/stat");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Record record;
  load.finish(record);
  EXPECT_TRUE(record.metrics.empty());
}

}  // namespace
}  // namespace longca::testing
