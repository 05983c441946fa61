// Kernels that fail on one rank only: `naive` underneath.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/rank_faults.h"

namespace {

using namespace longca;
using testing::RankFault;

void be_killed(const ForwardArgs&) {
  std::raise(SIGKILL);
}
void sleep_for_ever(const ForwardArgs&) {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}
void compute_for_ever(const ForwardArgs&) {
  for (volatile bool go_on = true; go_on;) {
  }
}
void stop(const ForwardArgs&) {
  std::raise(SIGSTOP);
}
/// Sends the parent a record as if it were rank 0's.
void forge_record(const ForwardArgs&) {
  const std::string line = "{\"record\":{},\"ends\":false}\n";
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_un peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sun_family != AF_UNIX || std::strstr(peer.sun_path, "/ranks") == nullptr) continue;
    ::send(fd, line.data(), line.size(), MSG_NOSIGNAL);
  }
}
void exit_process(const ForwardArgs&) {
  ::_exit(5);
}
void throw_exception(const ForwardArgs&) {
  throw std::runtime_error("this kernel throws on one rank");
}
void leave_thread(const ForwardArgs&) {
  static std::once_flag once;
  std::call_once(once, [] { std::thread([] { compute_for_ever({}); }).detach(); });
}
/// A child in a session of its own, whose parent has ended, so that no signal to the rank's group
/// reaches it.
void leave_child(const ForwardArgs&) {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  sleep_for_ever({});
}
void write_past_lse(const ForwardArgs& args) {
  std::memset(args.lse.data + args.lse.heads * args.lse.head_stride, 1, 64);
}
/// No fault: other bits in every call, as kernels give that add in any order.
void waver(const BackwardArgs& args) {
  static std::int64_t calls = 0;
  if (args.dq.tokens == 0) return;
  constexpr float kOneBit = 1 + 0x1p-7F;  // of bfloat16
  const std::int64_t column = calls++ % args.dq.dim;
  if (args.dq.dtype == DType::float32) {
    args.dq.row<float>(0, 0)[column] *= kOneBit;
  } else {
    BFloat16& value = args.dq.row<BFloat16>(0, 0)[column];
    value = BFloat16(static_cast<float>(value) * kOneBit);
  }
}

constexpr RankFault kFaults[] = {
    {"rank_killed", be_killed},
    {"rank_sleeps", sleep_for_ever},
    {"rank_stops", stop},
    {"rank_computes", compute_for_ever},
    {"rank_exits", exit_process},
    {"rank_throws", throw_exception},
    {"rank_forges", forge_record},
    {"rank_leaves_thread", leave_thread},
    {"rank_leaves_child", leave_child},
    {"rank_past_lse", write_past_lse},
    {"rank_none"},
    {"rank_wavers", nullptr, waver},
};

/// A rank may fail before it is ready: once, while a file is there.
void fail_at_start() {
  const char* once = std::getenv("LONGCA_TEST_FAIL_ONCE");
  if (once != nullptr && testing::is_faulty_rank() && ::unlink(once) == 0) ::_exit(7);
}

void add_kernels(KernelRegistry& registry) {
  fail_at_start();
  testing::add_rank_faults(registry, registry.find("naive"), kFaults);
}

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "rank_faults", .add_kernels = add_kernels};
  return &info;
}
