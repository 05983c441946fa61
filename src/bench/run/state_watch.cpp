#include "bench/run/state_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "core/printable.h"
#include "core/process.h"
#include "core/thread_pool.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace longca {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kFirstNap = 100us;  // between two looks at running threads; doubles up to kMaxNap
constexpr auto kMaxNap = 20ms;
constexpr auto kPatience = 2s;  // for them to fall asleep

constexpr unsigned kFlushesDenormals = 0x8040;
constexpr unsigned kMasksExceptions = 0x1f80;

/// MXCSR without the flags of exceptions that have happened.
unsigned sse_control() {
#ifdef __SSE__
  return _mm_getcsr() & ~0x3fU;
#else
  return 0;
#endif
}

const char* name_of_rounding(int mode) {
  switch (mode) {
    case FE_UPWARD:
      return "upward";
    case FE_DOWNWARD:
      return "downward";
    case FE_TOWARDZERO:
      return "towards zero";
    default:
      return "to nearest";
  }
}

/// Whether the user has told OpenMP to bind threads: it then binds the calling thread too.
bool binds_by_wish() {
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "KMP_AFFINITY", "GOMP_CPU_AFFINITY"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

bool is_active(std::string_view policy) {
  const std::size_t begin = policy.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return false;
  policy = policy.substr(begin, policy.find_last_not_of(" \t") + 1 - begin);
  return std::ranges::equal(policy, std::string_view("active"),
                            [](char a, char b) { return std::tolower(a) == b; });
}

/// The user's setting by which idle threads of OpenMP spin: "OMP_WAIT_POLICY=active"; "" for none.
std::string spins_by_wish() {
  for (const char* name : {"OMP_WAIT_POLICY", "KMP_BLOCKTIME", "GOMP_SPINCOUNT"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    const bool is_policy = name == std::string_view("OMP_WAIT_POLICY");
    // A number with or without a unit; strtod also reads "infinite" and "infinity".
    const bool spins = is_policy ? is_active(value) : std::strtod(value, nullptr) > 0;
    if (spins) return fmt::format("{}={}", name, printable(value));
  }
  return {};
}

bool runs(const std::filesystem::path& task) {
  const std::string text = proc_text(task / "stat");
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] == 'R';
}

/// Threads of this process that run or wait for a CPU (so that other processes' load does not hide
/// them), without the calling one.
std::set<pid_t> running_threads() {
  std::set<pid_t> running;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::stoi(task.path().filename().string());
    if (thread != ::gettid() && runs(task.path())) running.insert(thread);
  }
  return running;
}

}  // namespace

StateWatch::StateWatch(Threads threads)
    : threads_(threads), rounding_(std::fegetround()), control_(sse_control()) {
  std::fegetenv(&environment_);
  CPU_ZERO(&cpus_);
  sched_getaffinity(0, sizeof cpus_, &cpus_);
}

/// What differs in the calling thread: "the rounding mode upward"; "" if nothing.
std::string StateWatch::differences() const {
  if (const int rounding = std::fegetround(); rounding != rounding_) {
    return fmt::format("the rounding mode {}", name_of_rounding(rounding));
  }
  const unsigned changed = sse_control() ^ control_;
  if ((changed & kMasksExceptions) != 0) return "floating-point exceptions that end the process";
  if ((changed & kFlushesDenormals) != 0) return "denormal numbers to be flushed to zero";
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && !CPU_EQUAL(&cpus, &cpus_) &&
      !binds_by_wish()) {
    return fmt::format("a thread bound to {} of {} CPUs", CPU_COUNT(&cpus), CPU_COUNT(&cpus_));
  }
  return {};
}

void StateWatch::restore_here() const {
  std::fesetenv(&environment_);
  if (!binds_by_wish()) sched_setaffinity(0, sizeof cpus_, &cpus_);
}

template <typename Body>
void StateWatch::in_every_thread(const Body& body) const {
  if (threads_ == Threads::caller) return body();
  ThreadPool& pool = ThreadPool::global();
  const int threads = pool.threads();
  std::atomic<int> arrived{0};
  // Each thread waits in its item until all have one, so that none takes two. Gives up where a loop
  // that a kernel left running in the pool keeps threads away.
  const auto give_up = Clock::now() + 100ms;
  pool.parallel_for(threads, [&](std::int64_t, int) {
    body();
    ++arrived;
    while (arrived < threads && Clock::now() < give_up) std::this_thread::yield();
  });
}

void StateWatch::restore() {
  in_every_thread([&] {
    if (!differences().empty()) restore_here();
  });
}

void StateWatch::check(std::string_view stage) {
  std::mutex mutex;
  in_every_thread([&] {
    const std::string found = differences();
    if (found.empty()) return;
    restore_here();
    const std::scoped_lock lock(mutex);
    note(stage, "left " + found);
  });
}

std::string StateWatch::check_idle(std::string_view stage) {
  std::set<pid_t> busy = running_threads();
  if (busy.empty()) return {};
  if (const std::string wish = spins_by_wish(); !wish.empty()) {
    return fmt::format("not looked for: {} lets idle threads spin", wish);
  }
  std::chrono::microseconds nap = kFirstNap;
  for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
    std::this_thread::sleep_for(nap);
    nap = std::min<std::chrono::microseconds>(2 * nap, kMaxNap);
    const std::set<pid_t> now = running_threads();
    std::erase_if(busy, [&](pid_t thread) { return !now.contains(thread); });
    if (busy.empty()) return {};
  }
  const auto count = busy.size();
  note(stage, fmt::format("left {} behind that {} on working while no call runs",
                          count == 1 ? "a thread" : fmt::format("{} threads", count),
                          count == 1 ? "goes" : "go"));
  return {};
}

void StateWatch::note(std::string_view stage, const std::string& what) {
  if (finding_.empty()) finding_ = fmt::format("{} {}", stage, what);
}

std::string StateWatch::take_finding() {
  return std::exchange(finding_, {});
}

}  // namespace longca
