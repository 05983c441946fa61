#pragma once

#include <sched.h>

#include <cfenv>
#include <string>
#include <string_view>

namespace longca {

/// What every kernel call must leave as it found it, in the thread that makes it and in those of
/// ThreadPool::global(): the floating-point environment and the CPUs that the thread may use.
/// Nobody but that call would be to blame for the results and times of what follows.
class StateWatch {
 public:
  /// The state now is the one to keep. To be made before anything foreign is loaded.
  StateWatch();

  /// Sets the state back; what differed is forgotten. For what a library does as it is loaded.
  void restore();
  /// Sets the state back and keeps the first finding: "forward left the rounding mode upward".
  void check(std::string_view stage);
  /// Keeps a finding if this process is at work though no call runs: a thread that a kernel left
  /// behind would slow down every later call. Threads that spin for a while before they sleep, as
  /// those of OpenMP, have two seconds to get there; none is waited for where all sleep.
  void check_idle(std::string_view stage);

  /// Takes the first finding since the last call; empty if there is none.
  std::string take_finding();

 private:
  void note(std::string_view stage, const std::string& what);
  std::string differences() const;
  void restore_here() const;
  /// Calls body() in this thread and each of the pool's.
  template <typename Body>
  static void in_every_thread(const Body& body);

  std::fenv_t environment_{};
  int rounding_ = FE_TONEAREST;
  unsigned control_ = 0;  ///< of SSE: how denormals and exceptions are treated
  cpu_set_t cpus_{};
  std::string finding_;
};

}  // namespace longca
