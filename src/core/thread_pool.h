#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace longca {

/// A fixed set of threads for parallel loops. The calling thread takes part as worker 0.
class ThreadPool {
 public:
  /// `threads` counts the caller; at least 1. Throws SystemError that says how many could be
  /// started, if not all.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// Calls body(item, worker) once for every item of [0, items); items start in increasing order,
  /// and `worker` in [0, threads()) selects per-thread scratch. Returns when all are done and
  /// rethrows the first exception of a body. A nested or concurrent call runs its whole loop on the
  /// calling thread, as worker 0; so does every call in a process forked from the pool's.
  void parallel_for(std::int64_t items,
                    const std::function<void(std::int64_t item, int worker)>& body);

  /// The program's pool, of wanted_threads().
  static ThreadPool& global();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// $LONGCA_THREADS, which must be 1 to 4096 (InputError), or else available_cpus().
int wanted_threads();

/// CPUs that this process may use: the lesser of its affinity mask and its cgroup's CPU quota.
int available_cpus();

}  // namespace longca
