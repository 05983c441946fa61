#include "bench/run/run_cells.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <utility>

namespace longca {
namespace {

/// Set by the handler, read by any thread.
std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free);

std::atomic<std::int64_t> received_at_ms = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // a signal handler may
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// A signal that comes long after the first ends the process. `timeout` and schedulers signal a
/// process and then its group: what comes at once is the same request.
void remember(int number) {
  constexpr std::int64_t kSameRequestMs = 300;
  const std::int64_t now = now_ms();
  if (received != 0 && now - received_at_ms > kSameRequestMs) {
    std::signal(number, SIG_DFL);
    std::raise(number);
    return;
  }
  if (received == 0) received_at_ms = now;
  received = number;
}

std::string now_rfc3339() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace

bool run_cells(std::span<const Case> cases, RunListener& listener, const CellFunction& run_cell) {
  for (const Case& c : cases) {
    if (InterruptGuard::signal() != 0) return false;
    listener.started(c);
    Record record;
    std::string output;
    if (!run_cell(c, record, output)) return false;
    record.at = now_rfc3339();
    listener.finished(record, output);
  }
  return true;
}

InterruptGuard::InterruptGuard() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = 0;  // without SA_RESTART: a wait returns
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

InterruptDeadline::InterruptDeadline(std::function<void(int signal)> last_words)
    : last_words_(std::move(last_words)), watcher_([this] { watch(); }) {}

InterruptDeadline::~InterruptDeadline() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void InterruptDeadline::watch() {
  constexpr std::chrono::milliseconds kBetweenLooks{50};
  const auto ends = [this] { return ends_; };
  std::unique_lock lock(mutex_);
  while (InterruptGuard::signal() == 0) {
    if (changed_.wait_for(lock, kBetweenLooks, ends)) return;
  }
  if (changed_.wait_for(lock, kInterruptGrace, ends)) return;
  last_words_(InterruptGuard::signal());
  ::_exit(128 + InterruptGuard::signal());
}

}  // namespace longca
