// Kernels that fail on the device, each in its own way, beside one that is right: attention one
// thread per row, from a dense mask.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "attention/api/plugin.h"
#include "core/cuda/error.h"
#include "core/device.h"

namespace {

using namespace longca;

/// The runtime is this library's own, and so is its last error: cleared, or the next kernel's check
/// of its launch would find it.
void check(cudaError_t code, const char* expression, int line) {
  cudaGetLastError();
  check_cuda(code, expression, "fault_plugin_cuda.cu", line);
}
#define CHECK(expression) check((expression), #expression, __LINE__)

struct Shape {
  int tokens, heads_q, heads_k, dim;
  float scale;
};

__global__ void attend(const float* q, const float* k, const float* v, const unsigned char* mask,
                       float* o, float* lse, Shape s) {
  const int row = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(threadIdx.x);
  const int kv = head * s.heads_k / s.heads_q;
  const auto score = [&](int key) {
    float sum = 0;
    for (int i = 0; i < s.dim; ++i) {
      sum += q[(row * s.heads_q + head) * s.dim + i] * k[(key * s.heads_k + kv) * s.dim + i];
    }
    return sum * s.scale;
  };
  float* out = o + (row * s.heads_q + head) * s.dim;
  float most = -INFINITY;
  float total = 0;
  for (int i = 0; i < s.dim; ++i) out[i] = 0;
  for (int key = 0; key < s.tokens; ++key) {
    if (mask[row * s.tokens + key] == 0) continue;
    const float x = score(key);
    const float larger = fmaxf(most, x);
    const float shrink = expf(most - larger);
    const float weight = expf(x - larger);
    total = total * shrink + weight;
    for (int i = 0; i < s.dim; ++i) {
      out[i] = out[i] * shrink + weight * v[(key * s.heads_k + kv) * s.dim + i];
    }
    most = larger;
  }
  for (int i = 0; i < s.dim && total > 0; ++i) out[i] /= total;
  lse[head * s.tokens + row] = total > 0 ? most + logf(total) : -INFINITY;
}

__global__ void write_at(int* address) {
  *address = 1;
}
__global__ void trap() {
  __trap();
}
__global__ void spin_for_ever(volatile int* never) {
  while (*never == 0) {
  }
}
__global__ void flip(unsigned char* byte) {
  *byte ^= 1;
}

cudaStream_t queue(const ForwardArgs& args) {
  return static_cast<cudaStream_t>(args.stream);
}

/// Next to null; higher addresses may be mapped by the driver.
void illegal_address(const ForwardArgs& args, int) {
  write_at<<<1, 1, 0, queue(args)>>>(reinterpret_cast<int*>(std::uintptr_t{64}));
}
void illegal_later(const ForwardArgs& args, int call) {
  if (call > 2) illegal_address(args, call);
}
void illegal_then_throw(const ForwardArgs& args, int call) {
  illegal_address(args, call);
  throw std::runtime_error("its own error comes first");
}
void launch_failure(const ForwardArgs& args, int) {
  trap<<<1, 1, 0, queue(args)>>>();
}
/// A launch that the runtime refuses, and nobody looks.
void bad_launch(const ForwardArgs& args, int) {
  trap<<<1, 4096, 0, queue(args)>>>();
}
void hang(const ForwardArgs& args, int) {
  const Buffer never(Device::get(DeviceKind::cuda).memory(), 4);
  CHECK(cudaMemsetAsync(never.data(), 0, 4, queue(args)));
  spin_for_ever<<<1, 1, 0, queue(args)>>>(never.as<int>());
}
void tracked_memory(const ForwardArgs&, int) {
  const Buffer buffer(Device::get(DeviceKind::cuda).memory(), std::int64_t{1} << 42);
}
/// Takes the device's memory past the tracker until there is none.
void untracked_memory(const ForwardArgs&, int) {
  struct Blocks {
    ~Blocks() {
      for (void* block : taken) cudaFree(block);
    }
    std::vector<void*> taken;
  } blocks;
  while (true) {
    void* block = nullptr;
    CHECK(cudaMalloc(&block, std::size_t{1} << 30));
    blocks.taken.push_back(block);
  }
}
void write_nan(const ForwardArgs& args, int) {
  CHECK(cudaMemsetAsync(args.o.data, 0xff, 4, queue(args)));
}
void write_input(const ForwardArgs& args, int call) {
  auto* key = static_cast<unsigned char*>(const_cast<void*>(args.k.data));
  if (call == 1) flip<<<1, 1, 0, queue(args)>>>(key);
}
void go_wrong_later(const ForwardArgs& args, int call) {
  if (call > 2) CHECK(cudaMemsetAsync(args.o.data, 0, 4, queue(args)));
}
void wait_inside(const ForwardArgs& args, int) {
  CHECK(cudaStreamSynchronize(queue(args)));
}
/// Writes a part of the output on a stream of its own, which waits for nothing; the given one waits
/// for it, so that the result is right.
void jump_the_queue(const ForwardArgs& args, int) {
  static cudaStream_t own = nullptr;
  static cudaEvent_t done = nullptr;
  if (own == nullptr) {
    CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&done));
  }
  CHECK(cudaMemsetAsync(args.o.data, 0, 64, own));
  CHECK(cudaEventRecord(done, own));
  CHECK(cudaStreamWaitEvent(queue(args), done));
}
/// Half a GiB that the tracker does not see.
void hidden_memory(const ForwardArgs&, int) {
  static void* block = nullptr;
  if (block == nullptr) CHECK(cudaMalloc(&block, std::size_t{1} << 29));
}
/// A fifth of the device's memory for each plan, for ever.
void keep_memory(const ForwardArgs&, int call) {
  static std::vector<std::unique_ptr<Buffer>> kept;
  if (call > 1) return;
  Device& device = Device::get(DeviceKind::cuda);
  kept.push_back(std::make_unique<Buffer>(device.memory(), device.properties().memory_bytes / 5));
}
void print(const ForwardArgs&, int) {
  if (::write(STDOUT_FILENO, "a line from the kernel\n", 23) < 0) std::abort();
}

struct Fault {
  const char* name;
  void (*fault)(const ForwardArgs& args, int call);
  bool first = false;  ///< before the right result is computed, not after
};
constexpr Fault kFaults[] = {
    {"cuda_none", print},
    {"cuda_illegal_address", illegal_address},
    {"cuda_illegal_later", illegal_later},
    {"cuda_illegal_then_throw", illegal_then_throw},
    {"cuda_trap", launch_failure},
    {"cuda_bad_launch", bad_launch},
    {"cuda_hang", hang},
    {"cuda_tracked_memory", tracked_memory},
    {"cuda_untracked_memory", untracked_memory},
    {"cuda_nan", write_nan},
    {"cuda_input", write_input},
    {"cuda_later", go_wrong_later},
    {"cuda_waits", wait_inside},
    {"cuda_jumps_the_queue", jump_the_queue, true},
    {"cuda_hidden_memory", hidden_memory},
    {"cuda_keeps_memory", keep_memory},
};

class FaultPlan : public Plan {
 public:
  FaultPlan(const Fault& fault, const Problem& p, const Mask& mask)
      : fault_(fault),
        shape_{static_cast<int>(p.tokens_q), p.heads_q, p.heads_k, p.head_dim, p.scale()},
        mask_(Device::get(DeviceKind::cuda).memory(), p.tokens_q * p.tokens_k) {
    const std::vector<std::uint8_t> dense = mask.dense(0);
    Device::get(DeviceKind::cuda).copy(mask_.data(), dense.data(), mask_.bytes());
  }
  void forward(const ForwardArgs& args) override {
    ++calls_;
    if (fault_.first) fault_.fault(args, calls_);
    attend<<<static_cast<unsigned>(shape_.tokens), static_cast<unsigned>(shape_.heads_q), 0,
             queue(args)>>>(static_cast<const float*>(args.q.data),
                            static_cast<const float*>(args.k.data),
                            static_cast<const float*>(args.v.data), mask_.as<unsigned char>(),
                            static_cast<float*>(args.o.data), args.lse.data, shape_);
    CHECK(cudaGetLastError());
    if (!fault_.first) fault_.fault(args, calls_);
  }
  void backward(const BackwardArgs&) override {}
  std::int64_t workspace_bytes() const override { return mask_.bytes(); }

 private:
  const Fault& fault_;
  Shape shape_;
  Buffer mask_;
  int calls_ = 0;
};

class FaultKernel : public Kernel {
 public:
  explicit FaultKernel(const Fault& fault) : fault_(fault) {
    capabilities_.name = fault.name;
    capabilities_.description = "one thread per row, and a fault";
    capabilities_.origin = "tests";
    capabilities_.device = DeviceKind::cuda;
    capabilities_.dtypes = {DType::float32};
    capabilities_.block_masks = false;
    capabilities_.backward = false;
    capabilities_.accumulate = false;
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return check_capabilities(capabilities_, problem, mask);
  }
  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<FaultPlan>(fault_, problem, mask);
  }

 private:
  const Fault& fault_;
  Capabilities capabilities_;
};

void add_kernels(KernelRegistry& registry) {
  for (const Fault& fault : kFaults) registry.add(std::make_unique<FaultKernel>(fault));
}

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "device faults", .add_kernels = add_kernels};
  return &info;
}
