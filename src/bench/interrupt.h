#pragma once

#include <csignal>

namespace longca {

/// While one lives, SIGINT and SIGTERM do not end the process: they are remembered, and waiting
/// calls return early. A second one ends it at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The signal that came, or 0.
  static int signal();

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace longca
