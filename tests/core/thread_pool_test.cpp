#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/system_error.h"

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

// The sanitizers need more addresses than the limit leaves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Bytes of addresses that this process has.
std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(ThreadPool, WithoutRoomForItsThreadsItThrowsAndEndsThoseItStarted) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    constexpr std::size_t kRoom = std::size_t{200} << 20;  // the stacks of some threads, not of all
    const rlimit limit{address_space() + kRoom, address_space() + kRoom};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      const ThreadPool pool(4096);
    } catch (const SystemError& error) {
      const std::string what = error.what();
      const bool is_named = what.find(" of 4096 threads could be started: ") != what.npos;
      std::size_t threads = 0;
      for ([[maybe_unused]] const auto& entry :
           std::filesystem::directory_iterator("/proc/self/task")) {
        ++threads;
      }
      ::_exit(is_named && threads == 1 ? 0 : 2);
    }
    ::_exit(3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

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
