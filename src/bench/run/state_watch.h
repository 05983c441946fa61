#pragma once

#include <sched.h>

#include <cfenv>
#include <cstdint>
#include <string>
#include <string_view>

namespace longca {

/// Checks that kernel calls leave the state of this process as they found it: the floating-point
/// environment and the CPUs that a thread may use. A change would falsify results and times of all
/// that follows.
class StateWatch {
 public:
  enum class Threads : std::uint8_t {
    caller,          ///< the one that makes the calls
    caller_and_pool  ///< also the threads of ThreadPool::global(), which a plug-in may use
  };
  /// Takes the current state of this thread as the one to keep. Construct it before any foreign
  /// code is loaded.
  explicit StateWatch(Threads threads);

  /// Restores the state without a finding, after a library was loaded.
  void restore();
  /// Restores the state and keeps the first finding: "forward left the rounding mode upward".
  void check(std::string_view stage);
  /// Keeps a finding if a thread of this process runs though no call does: one that a kernel left
  /// behind would slow down every later call. Waits up to two seconds for threads that spin before
  /// they sleep, such as OpenMP's. Where a thread runs and the user's settings let OpenMP's idle
  /// threads spin, returns that it did not look, and why; else "".
  std::string check_idle(std::string_view stage);

  /// Takes the first finding since the last call; empty if there is none.
  std::string take_finding();

 private:
  void note(std::string_view stage, const std::string& what);
  std::string differences() const;
  void restore_here() const;
  /// Calls body() in each of the threads.
  template <typename Body>
  void in_every_thread(const Body& body) const;

  Threads threads_;
  std::fenv_t environment_{};
  int rounding_ = FE_TONEAREST;
  unsigned control_ = 0;  ///< of SSE: how denormals and exceptions are treated
  cpu_set_t cpus_{};
  std::string finding_;
};

}  // namespace longca
