// Kernels that fail on the device of one rank only: `naive` underneath.

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "attention/plugin.h"

namespace {

using namespace longca;

/// The rank that fails; as text of Open MPI's variable.
constexpr std::string_view kFaulty = "1";

bool is_faulty() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr && rank == kFaulty;
}

__global__ void spin_for_ever(volatile int* never) {
  while (*never == 0) {
  }
}
__global__ void write_at(int* address) {
  *address = 1;
}

cudaStream_t queue(const ForwardArgs& args) {
  return static_cast<cudaStream_t>(args.stream);
}

void be_killed(const ForwardArgs&) {
  std::raise(SIGKILL);
}
/// While its peer waits for what it was to send.
void be_killed_later(const ForwardArgs&) {
  ::alarm(2);
  std::signal(SIGALRM, [](int) { std::raise(SIGKILL); });
  while (true) ::pause();
}
void hang(const ForwardArgs& args) {
  static int* never = nullptr;
  if (never == nullptr && cudaMalloc(&never, sizeof(int)) != cudaSuccess) std::abort();
  cudaMemsetAsync(never, 0, sizeof(int), queue(args));
  spin_for_ever<<<1, 1, 0, queue(args)>>>(never);
}
void use_illegal_address(const ForwardArgs& args) {
  write_at<<<1, 1, 0, queue(args)>>>(reinterpret_cast<int*>(std::uintptr_t{64}));
}

struct Fault {
  const char* name;
  void (*run)(const ForwardArgs&) = nullptr;
};

constexpr Fault kFaults[] = {
    {"rank_killed", be_killed},
    {"rank_killed_later", be_killed_later},
    {"rank_hangs", hang},
    {"rank_writes_anywhere", use_illegal_address},
    {"rank_none"},
};

class FaultPlan : public Plan {
 public:
  FaultPlan(const Fault& fault, std::unique_ptr<Plan> inner)
      : fault_(fault), inner_(std::move(inner)) {}

  void forward(const ForwardArgs& args) override {
    if (fault_.run != nullptr && is_faulty()) fault_.run(args);
    inner_->forward(args);
  }
  void backward(const BackwardArgs& args) override { inner_->backward(args); }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }

 private:
  const Fault& fault_;
  std::unique_ptr<Plan> inner_;
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
  const Kernel& naive = registry.find("naive", DeviceKind::cuda);
  for (const Fault& fault : kFaults) registry.add(std::make_unique<FaultKernel>(fault, naive));
}

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "rank_faults_cuda", .add_kernels = add_kernels};
  return &info;
}
