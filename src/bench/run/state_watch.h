#pragma once

#include <sched.h>

#include <cfenv>
#include <cstdint>
#include <string>
#include <string_view>

namespace longca {

/// What every kernel call must leave as it found it: the floating-point environment and the CPUs
/// that a thread may use. Nobody but that call would be to blame for the results and times of what
/// follows.
class StateWatch {
 public:
  enum class Threads : std::uint8_t {
    caller,          ///< the one that makes the calls
    caller_and_pool  ///< also those of ThreadPool::global(), which a plug-in's kernel may use
  };
  /// The state of this thread now is the one to keep. To be made before anything foreign is loaded.
  explicit StateWatch(Threads threads);

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
