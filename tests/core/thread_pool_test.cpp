#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

namespace longca {
namespace {

class ThreadPoolOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, ::testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolOf, RunsEveryItemOnceOnAValidWorker) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.threads(), GetParam());
  for (const int items : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(items));
    std::atomic<int> bad_workers{0};
    pool.parallel_for(items, [&](std::int64_t item, int worker) {
      ++visits[static_cast<std::size_t>(item)];
      if (worker < 0 || worker >= GetParam()) ++bad_workers;
    });
    for (const auto& count : visits) EXPECT_EQ(count, 1);
    EXPECT_EQ(bad_workers, 0);
  }
}

TEST_P(ThreadPoolOf, WorkersNeverShareScratch) {
  ThreadPool pool(GetParam());
  std::vector<std::int64_t> sums(
      static_cast<std::size_t>(GetParam()));  // unguarded on purpose: TSan watches
  pool.parallel_for(10000, [&](std::int64_t item, int worker) {
    sums[static_cast<std::size_t>(worker)] += item;
  });
  std::int64_t total = 0;
  for (const std::int64_t sum : sums) total += sum;
  EXPECT_EQ(total, 10000LL * 9999 / 2);
}

TEST_P(ThreadPoolOf, RethrowsAndStaysUsable) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.parallel_for(100,
                                 [](std::int64_t item, int) {
                                   if (item == 42) throw std::runtime_error("item 42");
                                 }),
               std::runtime_error);
  std::atomic<int> count{0};
  pool.parallel_for(10, [&](std::int64_t, int) { ++count; });
  EXPECT_EQ(count, 10);
}

TEST_P(ThreadPoolOf, SurvivesManyShortLoops) {
  ThreadPool pool(GetParam());
  std::atomic<int> count{0};
  for (int loop = 0; loop < 2000; ++loop) pool.parallel_for(3, [&](std::int64_t, int) { ++count; });
  EXPECT_EQ(count, 6000);
}

TEST_P(ThreadPoolOf, AForkedProcessRunsItsLoopsAlone) {
  auto pool = std::make_unique<ThreadPool>(GetParam());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // instead of a loop that waits for helpers which are not there
    int count = 0;
    pool->parallel_for(50, [&](std::int64_t, int worker) { count += worker == 0; });
    pool.reset();
    ::_exit(count == 50 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(AvailableCpus, IsAtLeastOne) {
  EXPECT_GE(available_cpus(), 1);
}

TEST_P(ThreadPoolOf, ALoopInsideALoopRunsEveryItemToo) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> visits(100);
  std::atomic<int> other_workers{0};
  pool.parallel_for(10, [&](std::int64_t outer, int) {
    pool.parallel_for(10, [&](std::int64_t inner, int worker) {
      ++visits[static_cast<std::size_t>(outer * 10 + inner)];
      if (worker != 0) ++other_workers;
    });
  });
  for (const auto& count : visits) EXPECT_EQ(count, 1);
  EXPECT_EQ(other_workers, 0);
}

}  // namespace
}  // namespace longca
