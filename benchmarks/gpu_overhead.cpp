// What measuring adds to a kernel's time on a GPU: the runner against a bare loop of events around
// the same call, both from a cold L2; and how far five runs of one cell lie apart.
//
//   gpu_overhead [gemm|KERNEL …]      default: gemm cudnn
//
// `gemm` is a bf16 product of 8192 × 8192 matrices by cuBLAS, wrapped as a plan and timed as a
// cell's pass is; any other name is a kernel of the registry (causal, 8K tokens, 64:8 heads, bf16,
// forward), run by the runner in a worker process: verified, timed, recorded.

#include <cublas_v2.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "attention/api/registry.h"
#include "attention/inputs/inputs.h"
#include "bench/cell/tensors.h"
#include "bench/measure/measurement.h"
#include "bench/run/runner.h"
#include "bench/run/worker.h"
#include "bench/suite/axes.h"
#include "core/cuda/caching_memory.h"
#include "core/cuda/event.h"
#include "core/error.h"

namespace longca {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;
constexpr double kSeconds = 1.0;  // of each measurement
constexpr std::int64_t kTokens = 8192;

cudaStream_t stream() {
  return static_cast<cudaStream_t>(Device::get(DeviceKind::cuda).stream());
}

/// The product q · k of the inputs, seen as square matrices, into o.
class GemmPlan : public Plan {
 public:
  GemmPlan() { check(cublasCreate(&handle_)); }
  ~GemmPlan() override { cublasDestroy(handle_); }
  GemmPlan(const GemmPlan&) = delete;
  GemmPlan& operator=(const GemmPlan&) = delete;

  void forward(const ForwardArgs& args) override {
    const float one = 1;
    const float zero = 0;
    const int n = static_cast<int>(args.q.tokens);
    check(cublasSetStream(handle_, static_cast<cudaStream_t>(args.stream)));
    check(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, args.q.data, CUDA_R_16BF,
                       n, args.k.data, CUDA_R_16BF, n, &zero, args.o.data, CUDA_R_16BF, n,
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }
  void backward(const BackwardArgs& /*args*/) override {
    throw_input_error("a product has no backward pass");
  }
  std::int64_t workspace_bytes() const override { return 0; }

 private:
  static void check(cublasStatus_t status) {
    LONGCA_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuBLAS: {}", cublasGetStatusString(status));
  }
  cublasHandle_t handle_ = nullptr;
};

/// The bare loop: flush, event, call, event, wait; the pause between repetitions is the runner's.
class BareLoop {
 public:
  BareLoop()
      : flushed_(memory_, std::max(4 * Device::get(DeviceKind::cuda).properties().cache_bytes,
                                   std::int64_t{256} << 20)) {}

  /// The median in ms.
  double time(const std::function<void()>& call) const {
    for (int i = 0; i < 20; ++i) repetition(call);
    std::vector<double> samples;
    const auto start = Clock::now();
    while (std::chrono::duration<double>(Clock::now() - start).count() < kSeconds) {
      samples.push_back(repetition(call));
    }
    return median(samples);
  }

 private:
  double repetition(const std::function<void()>& call) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    LONGCA_CUDA(
        cudaMemsetAsync(flushed_.data(), 0, static_cast<std::size_t>(flushed_.bytes()), stream()));
    begin_.record(stream());
    call();
    end_.record(stream());
    end_.wait();
    return end_.ms_since(begin_);
  }

  CachingCudaMemory memory_;
  Buffer flushed_;
  TimedCudaEvent begin_;
  TimedCudaEvent end_;
};

Case cell(const std::string& kernel) {
  Case c;
  c.kernel = kernel;
  c.mask = "causal";
  c.tokens = kTokens;
  c.heads_q = 64;
  c.heads_k = 8;
  c.device = "cuda";
  return canonical(c);
}

/// The last record of a run.
class Keep : public RunListener {
 public:
  void finished(const Record& r, const std::string& /*output*/) override { record = r; }
  Record record;
};

double time_by_runner(Runner& runner, const Case& c) {
  Keep keep;
  runner.run(std::vector<Case>{c}, keep);
  if (!keep.record.status.ok()) {
    fmt::print(stderr, "{}: {}\n", c.key(), keep.record.status.reason);
    std::exit(1);
  }
  return keep.record.metrics.at("time_ms");
}

/// Alternates both, so that a drift of the machine meets both, and prints a row.
void compare(const std::string& name, const std::function<double()>& bare,
             const std::function<double()>& ours) {
  std::vector<double> bare_ms;
  std::vector<double> our_ms;
  std::vector<double> differences;
  for (int round = 0; round < kRounds; ++round) {
    bare_ms.push_back(bare());
    our_ms.push_back(ours());
    differences.push_back((our_ms.back() / bare_ms.back() - 1) * 100);
  }
  const auto [least, most] = std::ranges::minmax(our_ms);
  const auto [least_off, most_off] = std::ranges::minmax(differences);
  fmt::print("{:<16}{:>10.4f}{:>10.4f}{:>+9.2f} %  ({:+.2f} … {:+.2f}){:>9.2f} %\n", name,
             median(bare_ms), median(our_ms), median(differences), least_off, most_off,
             (most / least - 1) * 100);
}

void compare_gemm(const BareLoop& loop) {
  Problem problem = cell("gemm").problem();
  problem.heads_k = problem.heads_q;
  const Inputs inputs = make_inputs(problem, 42);
  const Outputs outputs = Outputs::for_problem(problem);
  const ForwardArgs args = outputs.forward_args(inputs);
  GemmPlan plan;
  const auto call = [&] { plan.forward(args); };
  const auto clock = make_device_clock(DeviceKind::cuda);
  MeasureOptions options;
  options.time_limit_s = kSeconds;
  compare(
      "gemm", [&] { return loop.time(call); },
      [&] {
        return measure(*clock, {.call = call, .prepare = [&] { outputs.poison_forward(); }},
                       options)
            .median_ms;
      });
}

void compare_kernel(const BareLoop& loop, const std::string& name) {
  const Case c = cell(name);
  const Problem problem = c.problem();
  const GeneratedMask generated = generate_mask(c.mask_spec());
  const Kernel& kernel = KernelRegistry::global().find(name, DeviceKind::cuda);
  if (const Support support = kernel.supports(problem, generated.mask); !support.ok()) {
    throw InputError(support.reason);
  }
  const Inputs inputs = make_inputs(problem, c.seed);
  const Outputs outputs = Outputs::for_problem(problem);
  const ForwardArgs args = outputs.forward_args(inputs);
  const auto plan = kernel.plan(problem, generated.mask);
  RunOptions options;
  options.worker = {"/proc/self/exe"};
  options.cell.limits.time_limit_s = kSeconds;
  Runner runner(options);
  compare(
      name, [&] { return loop.time([&] { plan->forward(args); }); },
      [&] { return time_by_runner(runner, c); });
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 2 && arguments[0] == "--socket") {
    run_worker(std::stoi(arguments[1]), {});
    return 0;
  }
  const std::vector<std::string> names =
      arguments.empty() ? std::vector<std::string>{"gemm", "cudnn"} : arguments;
  const BareLoop loop;
  fmt::print("{}, bf16, medians of {} runs of {} s each\n",
             Device::get(DeviceKind::cuda).properties().name, kRounds, kSeconds);
  fmt::print("{:<16}{:>10}{:>10}{:>11}{:>29}\n", "", "bare ms", "ours ms", "ours−bare",
             "(each round)  spread of ours");
  for (const std::string& name : names) {
    if (name == "gemm") {
      compare_gemm(loop);
    } else {
      compare_kernel(loop, name);
    }
  }
  return 0;
}

}  // namespace
}  // namespace longca

int main(int argc, char** argv) {
  try {
    return longca::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_overhead: {}\n", error.what());
    return 1;
  }
}
