// Kernels that fail on the device of one rank only: `naive` underneath.

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "support/rank_faults.h"

namespace {

using namespace longca;
using testing::RankFault;

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

constexpr RankFault kFaults[] = {
    {"rank_killed", be_killed},
    {"rank_killed_later", be_killed_later},
    {"rank_hangs", hang},
    {"rank_writes_anywhere", use_illegal_address},
    {"rank_none"},
};

void add_kernels(KernelRegistry& registry) {
  testing::add_rank_faults(registry, registry.find("naive", DeviceKind::cuda), kFaults);
}

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "rank_faults_cuda", .add_kernels = add_kernels};
  return &info;
}
