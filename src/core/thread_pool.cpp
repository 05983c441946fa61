#include "core/thread_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/parse.h"
#include "core/system_error.h"

namespace longca {

struct ThreadPool::Impl {
  using Body = std::function<void(std::int64_t, int)>;

  std::mutex mutex;
  std::condition_variable work_ready;
  std::condition_variable work_done;
  std::uint64_t generation = 0;  // number of loops, so that a helper joins each one once
  int running = 0;               // helpers still inside the current loop
  bool stopping = false;
  std::vector<std::thread> helpers;
  std::atomic_flag busy;  // a loop is in progress
  const pid_t owner = ::getpid();

  /// fork copies the pool but not its helpers, and perhaps amid a loop.
  bool is_forked() const { return ::getpid() != owner; }

  // State of the loop in progress.
  const Body* body = nullptr;
  std::int64_t items = 0;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;

  void work(int worker) {
    for (;;) {
      const std::int64_t item = next.fetch_add(1, std::memory_order_relaxed);
      if (item >= items) return;
      try {
        (*body)(item, worker);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!failure) failure = std::current_exception();
        next.store(items, std::memory_order_relaxed);  // skips the rest
      }
    }
  }

  /// Ends the helpers, which run no loop.
  void stop() {
    {
      const std::scoped_lock lock(mutex);
      stopping = true;
    }
    work_ready.notify_all();
    for (std::thread& helper : helpers) helper.join();
  }

  void help(int worker) {
    std::uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        work_ready.wait(lock, [&] { return stopping || generation != seen; });
        if (stopping) return;
        seen = generation;
      }
      work(worker);
      const std::scoped_lock lock(mutex);
      if (--running == 0) work_done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  LONGCA_CHECK(threads >= 1, "a pool of {} threads", threads);
  impl_->helpers.reserve(static_cast<std::size_t>(threads) - 1);
  try {
    for (int worker = 1; worker < threads; ++worker) {
      impl_->helpers.emplace_back([impl = impl_.get(), worker] { impl->help(worker); });
    }
  } catch (const std::system_error& error) {
    const std::size_t started = impl_->helpers.size() + 1;
    impl_->stop();  // a thread that nobody joined would end the process
    throw SystemError(
        fmt::format("{} of {} threads could be started: {}; LONGCA_THREADS asks for fewer", started,
                    threads, error.code().message()));
  }
}

ThreadPool::~ThreadPool() {
  if (impl_->is_forked()) {
    static_cast<void>(impl_.release());  // there is nothing to join
    return;
  }
  impl_->stop();
}

int ThreadPool::threads() const {
  return static_cast<int>(impl_->helpers.size()) + 1;
}

void ThreadPool::parallel_for(std::int64_t items,
                              const std::function<void(std::int64_t, int)>& body) {
  if (items <= 0) return;
  if (items == 1) return body(0, 0);  // not worth waking a helper
  Impl& p = *impl_;
  if (p.is_forked() || p.busy.test_and_set(std::memory_order_acquire)) {
    for (std::int64_t item = 0; item < items; ++item) body(item, 0);
    return;
  }
  {
    const std::scoped_lock lock(p.mutex);
    p.body = &body;
    p.items = items;
    p.next.store(0, std::memory_order_relaxed);
    p.failure = nullptr;
    p.running = static_cast<int>(p.helpers.size());
    ++p.generation;
  }
  p.work_ready.notify_all();
  p.work(0);
  std::exception_ptr failure;
  {
    std::unique_lock lock(p.mutex);
    p.work_done.wait(lock, [&] { return p.running == 0; });
    failure = std::exchange(p.failure, nullptr);
  }
  p.busy.clear(std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

int wanted_threads() {
  const char* wanted = std::getenv("LONGCA_THREADS");
  if (wanted == nullptr) return available_cpus();
  constexpr std::int64_t kMaxThreads = 4096;
  const std::int64_t threads = parse_count("LONGCA_THREADS", wanted);
  if (threads < 1 || threads > kMaxThreads) {
    throw_input_error("LONGCA_THREADS is {}; it must be 1 to {}", threads, kMaxThreads);
  }
  return static_cast<int>(threads);
}

ThreadPool& ThreadPool::global() {
  static ThreadPool pool(wanted_threads());
  return pool;
}

namespace {

// The cgroup's CPU quota in CPUs, or a large number if it has none.
double cgroup_cpu_quota() {
  constexpr double kNone = 1e9;
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period) {
    return quota == "max" || period <= 0 ? kNone : std::stod(quota) / period;
  }
  double quota_us = 0;
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (v1_quota >> quota_us && v1_period >> period && quota_us > 0 && period > 0)
    return quota_us / period;
  return kNone;
}

}  // namespace

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int affinity = sched_getaffinity(0, sizeof(set), &set) == 0
                           ? CPU_COUNT(&set)
                           : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, static_cast<int>(std::min<double>(affinity, std::ceil(cgroup_cpu_quota()))));
}

}  // namespace longca
