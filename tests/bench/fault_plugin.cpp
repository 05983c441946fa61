// Kernels that fail, each in its own way: `naive` underneath, and a fault in one pass.

#include <fenv.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "attention/api/plugin.h"
#include "core/memory.h"

namespace {

using namespace longca;

void crash() {
  std::raise(SIGSEGV);
}
void abort_process() {
  std::abort();
}
void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}
void exit_process() {
  std::exit(3);
}
void exit_well() {
  ::_exit(0);
}
void throw_exception() {
  throw std::runtime_error("this kernel always throws");
}
void throw_number() {
  throw 42;
}  // NOLINT: that it is no std::exception is the fault
void allocate_tracked() {
  const HostBuffer buffer(std::int64_t{1} << 40);
}
/// By malloc, since the sanitizers end the process where `new` cannot have its memory.
void allocate_untracked() {
  constexpr std::size_t kBytes = std::size_t{1} << 40;
  const std::unique_ptr<void, void (*)(void*)> memory(std::malloc(kBytes), std::free);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory.get(), 1, kBytes);
}
/// What a kernel's library prints must not come between the messages.
void write_to_sockets() {
  for (int fd = 3; fd < 32; ++fd) ::send(fd, "no message\n", 11, MSG_NOSIGNAL);
}
void print() {
  ::write(STDOUT_FILENO, "a line from the kernel\n", 23) < 0 ? ::abort() : void();
}

/// A fault before a pass runs.
struct Fault {
  const char* name;
  void (*before_forward)() = nullptr;
  void (*before_backward)() = nullptr;
  void (*after_forward)(const ForwardArgs& args, int call) = nullptr;
  void (*instead_of_backward)(const BackwardArgs& args) = nullptr;
  void (*after_backward)(const BackwardArgs& args, int call) = nullptr;
  bool returns_lse = true;  ///< whether it says so
};

void set_first(const TensorView& t, float value) {
  if (t.dtype == DType::float32) {
    *t.row<float>(0, 0) = value;
  } else {
    *t.row<BFloat16>(0, 0) = BFloat16(value);
  }
}

void write_nan(const ForwardArgs& args, int) {
  set_first(args.o, std::numeric_limits<float>::quiet_NaN());
}
void write_input(const ForwardArgs& args, int call) {
  if (call == 1) *static_cast<std::uint16_t*>(const_cast<void*>(args.k.data)) ^= 1;
}
void write_past_lse(const ForwardArgs& args, int) {
  std::memset(args.lse.data + args.lse.heads * args.lse.tokens, 0, 64);
}
void write_before_dv(const BackwardArgs& args, int call) {
  if (call > 2) static_cast<unsigned char*>(args.dv.data)[-4] = 1;
}
void go_wrong_later(const ForwardArgs& args, int call) {
  if (call > 2) set_first(args.o, 100);
}
void write_nothing(const BackwardArgs&) {}

/// A line as a worker's, on whatever sockets there are; no kernel knows their secret.
void send_line(const std::string& line) {
  for (int fd = 3; fd < 32; ++fd) ::send(fd, line.data(), line.size(), MSG_NOSIGNAL);
}
/// Would stop the cell's clock.
void forge_stage() {
  send_line("{\"stage\":\"reference\"}\n");
  hang();
}
void forge_record() {
  send_line("{\"ends\":false,\"record\":{}}\n");
}
void send_without_end() {
  const std::string block(1 << 20, 'x');
  while (true) send_line(block);
}
void print_without_end() {
  const std::string block(1 << 20, 'x');
  while (::write(STDOUT_FILENO, block.data(), block.size()) > 0) {
  }
  hang();
}
void start_in_own_session() {
  if (::fork() != 0) return;
  ::setsid();
  while (true) ::pause();
}
/// A child keeps the worker's socket open.
void end_beside_child() {
  if (::fork() == 0) hang();
  ::_exit(9);
}
void round_upward(const ForwardArgs&, int) {
  std::fesetround(FE_UPWARD);
}
void trap_exceptions(const ForwardArgs&, int) {
  ::feenableexcept(FE_DIVBYZERO | FE_INVALID);
}
void bind_thread(const ForwardArgs&, int) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}
void leave_busy_thread(const ForwardArgs&, int call) {
  if (call > 1) return;
  std::thread([] {
    for (volatile bool go_on = true; go_on;) {
    }
  }).detach();
}
void keep_memory(const ForwardArgs&, int call) {
  if (call > 1) return;
  static std::vector<std::unique_ptr<HostBuffer>> kept;
  kept.push_back(std::make_unique<HostBuffer>(std::int64_t{96} << 20));
}
/// No fault: threads that spin for a while, as OpenMP's, and then wait for work.
void use_own_threads(const ForwardArgs&, int call) {
  if (call > 1) return;
  for (int i = 0; i < 4; ++i) {
    std::thread([] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
      while (std::chrono::steady_clock::now() < end) {
      }
      hang();
    }).detach();
  }
}
/// As sums do that are added up in any order.
void round_otherwise(const BackwardArgs& args, int call) {
  if (call % 2 == 0) *args.dq.row<std::uint32_t>(0, 0) ^= 1;
}

void write_dk(const BackwardArgs& args, int) {
  set_first(args.dk, 100);
}

constexpr Fault kFaults[] = {
    {.name = "fault_segv", .before_forward = crash},
    {.name = "fault_segv_backward", .before_backward = crash},
    {.name = "fault_abort", .before_forward = abort_process},
    {.name = "fault_hang", .before_forward = hang},
    {.name = "fault_exit", .before_forward = exit_process},
    {.name = "fault_exit_well", .before_backward = exit_well},
    {.name = "fault_exception", .before_forward = throw_exception},
    {.name = "fault_number", .before_forward = throw_number},
    {.name = "fault_tracked_tb", .before_forward = allocate_tracked},
    {.name = "fault_untracked_tb", .before_forward = allocate_untracked},
    {.name = "fault_socket", .before_forward = write_to_sockets},
    {.name = "fault_nan", .after_forward = write_nan},
    {.name = "fault_input", .after_forward = write_input},
    {.name = "fault_past_lse", .after_forward = write_past_lse},
    {.name = "fault_before_dv", .after_backward = write_before_dv},
    {.name = "fault_later", .after_forward = go_wrong_later},
    {.name = "fault_unwritten", .instead_of_backward = write_nothing},
    {.name = "fault_dk_without_lse", .after_backward = write_dk, .returns_lse = false},
    {.name = "fault_rounding", .after_backward = round_otherwise},
    {.name = "stray_stage", .before_forward = forge_stage},
    {.name = "stray_record", .before_forward = forge_record},
    {.name = "stray_bytes", .before_forward = send_without_end},
    {.name = "stray_output", .before_forward = print_without_end},
    {.name = "stray_session", .before_forward = start_in_own_session},
    {.name = "stray_child", .before_forward = end_beside_child},
    {.name = "stray_rounding", .after_forward = round_upward},
    {.name = "stray_traps", .after_forward = trap_exceptions},
    {.name = "stray_binding", .after_forward = bind_thread},
    {.name = "stray_thread", .after_forward = leave_busy_thread},
    {.name = "stray_memory", .after_forward = keep_memory},
    {.name = "own_threads", .after_forward = use_own_threads},
    {.name = "fault_none", .before_forward = print},
};

class FaultPlan : public Plan {
 public:
  FaultPlan(const Fault& fault, std::unique_ptr<Plan> inner)
      : fault_(fault), inner_(std::move(inner)) {}

  void forward(const ForwardArgs& args) override {
    if (fault_.before_forward != nullptr) fault_.before_forward();
    inner_->forward(args);
    if (fault_.after_forward != nullptr) fault_.after_forward(args, ++calls_);
  }
  void backward(const BackwardArgs& args) override {
    if (fault_.before_backward != nullptr) fault_.before_backward();
    if (fault_.instead_of_backward != nullptr) return fault_.instead_of_backward(args);
    inner_->backward(args);
    if (fault_.after_backward != nullptr) fault_.after_backward(args, ++backward_calls_);
  }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }

 private:
  const Fault& fault_;
  std::unique_ptr<Plan> inner_;
  int calls_ = 0;
  int backward_calls_ = 0;
};

class FaultKernel : public Kernel {
 public:
  FaultKernel(const Fault& fault, const Kernel& inner)
      : fault_(fault), inner_(inner), capabilities_(inner.capabilities()) {
    capabilities_.name = fault.name;
    capabilities_.returns_lse = fault.returns_lse;
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return inner_.supports(problem, mask);
  }
  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<FaultPlan>(fault_, inner_.plan(problem, mask));
  }

 private:
  const Fault& fault_;
  const Kernel& inner_;
  Capabilities capabilities_;
};

#ifdef __SSE__
/// As the start-up code of libraries does that are compiled with -ffast-math: no fault.
const bool kFlushesDenormals = [] {
  _mm_setcsr(_mm_getcsr() | 0x8040);
  return true;
}();
#endif

void add_kernels(KernelRegistry& registry) {
  const Kernel& naive = registry.find("naive");
  for (const Fault& fault : kFaults) registry.add(std::make_unique<FaultKernel>(fault, naive));
}

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "faults", .add_kernels = add_kernels};
  return &info;
}
