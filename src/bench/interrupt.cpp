#include "bench/interrupt.h"

namespace longca {
namespace {

volatile std::sig_atomic_t received = 0;

void remember(int number) {
  received = number;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESETHAND;  // without SA_RESTART: a wait returns
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

int InterruptGuard::signal() {
  return received;
}

}  // namespace longca
