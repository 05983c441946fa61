// Plans of longca.h whose calls the device has not come to when they are released, and the device
// of the thread that calls. Where there are two GPUs the process uses the second one.

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <longca.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "capi/handle.h"
#include "core/cuda/error.h"
#include "gpu/gpu_test.h"

namespace longca::testing {
namespace {

constexpr std::int64_t kTokens = 4096;
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kDim = 128;
constexpr std::int64_t kElements = kTokens * kHeads * kDim;

int gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

class CapiOnAGpu : public GpuTest {
 protected:
  static void SetUpTestSuite() {
    if (gpus() > 1) setenv("LONGCA_DEVICE", "1", 1);
  }

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    LONGCA_CUDA(cudaSetDevice(gpus() > 1 ? 1 : 0));
    for (void** data : {&q_, &k_, &v_, &o_}) LONGCA_CUDA(cudaMalloc(data, kElements * 2));
    LONGCA_CUDA(cudaMalloc(reinterpret_cast<void**>(&lse_), kHeads * kTokens * sizeof(float)));
    LONGCA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    std::vector<__nv_bfloat16> host(kElements);
    float seed = 0.1F;
    for (void* data : {q_, k_, v_}) {
      for (auto& x : host) {
        seed = seed * 3.7F * (1 - seed);  // the logistic map: any numbers in (0, 1)
        x = __float2bfloat16(4 * seed - 2);
      }
      LONGCA_CUDA(cudaMemcpy(data, host.data(), kElements * 2, cudaMemcpyHostToDevice));
    }
    cudaFree(nullptr);
    LONGCA_CUDA(cudaSetDevice(0));
    LONGCA_CUDA(cudaFree(nullptr));  // the thread's own device has a context
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    cudaStreamSynchronize(stream_);
    for (void* data : {q_, k_, v_, o_, static_cast<void*>(lse_)}) cudaFree(data);
    cudaStreamDestroy(stream_);
  }

  static PlanHandle make_plan(const std::vector<std::int64_t>& cu_seqlens) {
    longca_problem problem = LONGCA_PROBLEM_INIT;
    problem.heads_q = problem.heads_k = kHeads;
    problem.dtype = LONGCA_BFLOAT16;
    problem.device = LONGCA_CUDA;
    const MaskHandle mask = packed_documents(cu_seqlens);
    longca_plan* plan = nullptr;
    EXPECT_EQ(longca_plan_create(&problem, mask.get(), &plan), LONGCA_OK) << longca_last_error();
    return own(plan);
  }
  void forward(longca_plan* plan) {
    const auto tensor = [](void* data) {
      return longca_tensor{data, kTokens, kHeads, kDim, kHeads * kDim, kDim};
    };
    const longca_forward_arguments arguments{
        tensor(q_), tensor(k_), tensor(v_), tensor(o_), {lse_, kHeads, kTokens, kTokens},
        stream_,    nullptr};
    ASSERT_EQ(longca_forward(plan, &arguments), LONGCA_OK) << longca_last_error();
  }
  std::vector<unsigned char> result() {
    std::vector<unsigned char> bytes(kElements * 2);
    LONGCA_CUDA(cudaStreamSynchronize(stream_));
    LONGCA_CUDA(cudaMemcpy(bytes.data(), o_, bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }
  void clear_result() { LONGCA_CUDA(cudaMemsetAsync(o_, 0xff, kElements * 2, stream_)); }

  /// Keeps the stream from going on until `open` is set, at most two seconds.
  static void CUDART_CB wait_until_open(void* open) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!*static_cast<std::atomic<bool>*>(open) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  void *q_ = nullptr, *k_ = nullptr, *v_ = nullptr, *o_ = nullptr;
  float* lse_ = nullptr;
  cudaStream_t stream_ = nullptr;
  /// Their lists are of about one size: the memory of one serves the other.
  const std::vector<std::int64_t> documents_{0, 1000, kTokens};
  const std::vector<std::int64_t> others_{0, 3096, kTokens};
};

TEST_F(CapiOnAGpu, APlanMayBeReleasedBeforeItsCallHasRun) {
  PlanHandle plan = make_plan(documents_);
  forward(plan.get());
  const auto wanted = result();
  std::atomic<bool> open = false;
  LONGCA_CUDA(cudaLaunchHostFunc(stream_, wait_until_open, &open));
  clear_result();
  forward(plan.get());
  plan.reset();
  const PlanHandle other = make_plan(others_);
  open = true;
  EXPECT_EQ(result(), wanted);
}

TEST_F(CapiOnAGpu, WhatAGraphHasCapturedStays) {
  PlanHandle plan = make_plan(documents_);
  forward(plan.get());
  const auto wanted = result();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  LONGCA_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  forward(plan.get());
  LONGCA_CUDA(cudaStreamEndCapture(stream_, &graph));
  LONGCA_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  plan.reset();
  const PlanHandle other = make_plan(others_);
  clear_result();
  LONGCA_CUDA(cudaGraphLaunch(executable, stream_));
  EXPECT_EQ(result(), wanted);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

/// With two GPUs: calls of a thread whose device is the other one.
TEST_F(CapiOnAGpu, AnyThreadMayCallAndKeepsItsDevice) {
  std::vector<std::vector<unsigned char>> results;
  const auto call = [&] {
    const PlanHandle plan = make_plan(documents_);
    clear_result();
    forward(plan.get());
    results.push_back(result());
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
  };
  call();
  std::thread(call).join();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace longca::testing
