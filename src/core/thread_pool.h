#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace longca {

/// A fixed set of threads that share loops. The calling thread works too, as worker 0.
class ThreadPool {
 public:
  /// `threads` counts the caller; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// Calls body(item, worker) for every item of [0, items), in increasing order of start, each
  /// once; `worker` in [0, threads()) says which per-thread scratch to use. Returns when all are
  /// done. The first exception of a body is rethrown here. While another loop is in progress (from
  /// inside a body, or from another thread) the calling thread does all of it, as worker 0.
  void parallel_for(std::int64_t items,
                    const std::function<void(std::int64_t item, int worker)>& body);

  /// The program's pool: as many threads as the process may use (its CPU affinity and its cgroup's
  /// quota), or LONGCA_THREADS of the environment.
  static ThreadPool& global();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Number of CPUs that this process may use: affinity mask, cut by the cgroup's CPU quota.
int available_cpus();

}  // namespace longca
