#include "parallel/transport/mpi/mpi_call.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "parallel/transport/long_wait.h"

namespace longca {
namespace {

constexpr int kSpins = 64;  ///< polls before the first pause
constexpr std::chrono::microseconds kShortestSleep{20};
constexpr std::chrono::microseconds kLongestSleep{1000};

std::function<void(bool)> long_wait_listener;

/// Reports a wait that takes long to the listener.
class LongWait {
 public:
  ~LongWait() {
    if (reported_) long_wait_listener(false);
  }
  void check() {
    if (reported_ || !long_wait_listener || Clock::now() - begin_ < kLongWait) return;
    long_wait_listener(true);
    reported_ = true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  bool reported_ = false;
};

}  // namespace

void set_long_wait_listener(std::function<void(bool)> listener) {
  long_wait_listener = std::move(listener);
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string_view whole(call);
  throw MpiError(
      fmt::format("rank {}: {}: {}", rank, whole.substr(0, whole.find('(')), text.data()));
}

void wait_until(Wait wait, const std::function<bool()>& done) {
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return;
  }
  LongWait watched;
  auto sleep = kShortestSleep;
  while (!done()) {
    watched.check();
    if (wait == Wait::eager) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(sleep);
      sleep = std::min(2 * sleep, kLongestSleep);
    }
  }
}

void wait_for(MPI_Request& request, Wait wait) {
  wait_until(wait, [&] {
    int done = 0;
    LONGCA_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
}

}  // namespace longca
