// Kernels that fail, each in its own way: `naive` underneath, and a fault in one pass.

#include <sys/socket.h>
#include <unistd.h>

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
  constexpr std::size_t bytes = std::size_t{1} << 40;
  const std::unique_ptr<void, void (*)(void*)> memory(std::malloc(bytes), std::free);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory.get(), 1, bytes);
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
void go_wrong_later(const ForwardArgs& args, int call) {
  if (call > 2) set_first(args.o, 100);
}
void write_nothing(const BackwardArgs&) {}
/// As sums do that are added up in any order.
void round_otherwise(const BackwardArgs& args, int call) {
  if (call % 2 == 0) *args.dq.row<std::uint32_t>(0, 0) ^= 1;
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
    {.name = "fault_later", .after_forward = go_wrong_later},
    {.name = "fault_unwritten", .instead_of_backward = write_nothing},
    {.name = "fault_rounding", .after_backward = round_otherwise},
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

void add_kernels(KernelRegistry& registry) {
  const Kernel& naive = registry.find("naive");
  for (const Fault& fault : kFaults) registry.add(std::make_unique<FaultKernel>(fault, naive));
}

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "faults", .add_kernels = add_kernels};
  return &info;
}
