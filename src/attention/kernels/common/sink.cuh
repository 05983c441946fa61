#pragma once

#include <cuda_runtime_api.h>

#include "attention/kernels/common/logarithms.h"
#include "core/cuda/error.h"

// Sinks: a learned logit per query head that joins the softmax's denominator (Problem::sink).
namespace longca {

/// Adds a sink to a row that ends with `lse` over its keys, −∞ without any, and whose sum of values
/// is multiplied by `factor`.
__device__ __forceinline__ void add_sink(float sink, float& lse, float& factor) {
  if (lse == -INFINITY) {
    lse = sink;
    return;
  }
  const float excess = sink - lse;
  factor *= __fdividef(1.0f, 1 + __expf(excess));
  lse = fmaxf(sink, lse) + log1pf(expf(-fabsf(excess)));
}

/// dsink = −Σ `own` over the kThreads threads of the CTA, or −= it; the order is fixed.
template <int kThreads>
__device__ __forceinline__ void store_sink_gradient(double own, bool added, float& dsink) {
  for (int step = 16; step > 0; step /= 2) own += __shfl_xor_sync(~0u, own, step);
  __shared__ double of_warps[kThreads / 32];
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x != 0) return;
  double all = 0;
  for (const double of_warp : of_warps) all += of_warp;
  dsink = static_cast<float>((added ? static_cast<double>(dsink) : 0) - all);
}

inline constexpr int kSinkThreads = 512;

/// dsink[head] = −Σ over rows of exp(sink − lse) delta, or += it. `terms_of(head, token)` gives
/// {lse · log2 e, or +∞ where the row counts for nothing; delta}. One CTA per query head, so that
/// the order of the sum is fixed.
template <typename TermsOf>
__global__ void __launch_bounds__(kSinkThreads)
    sink_gradient_kernel(TermsOf terms_of, const float* sink, float* dsink, int tokens,
                         bool accumulate) {
  const int head = static_cast<int>(blockIdx.x);
  const float sink_log2 = sink[head] * kLog2E;
  double sum = 0;
  for (int token = static_cast<int>(threadIdx.x); token < tokens; token += kSinkThreads) {
    const float2 terms = terms_of(head, token);
    sum += static_cast<double>(exp2f(sink_log2 - terms.x) * terms.y);
  }
  store_sink_gradient<kSinkThreads>(sum, accumulate, dsink[head]);
}

/// Launches sink_gradient_kernel, on the stream of the kernel that computes the terms.
template <typename TermsOf>
void launch_sink_gradient(const TermsOf& terms_of, const float* sink, float* dsink, int heads,
                          int tokens, bool accumulate, cudaStream_t stream) {
  sink_gradient_kernel<<<static_cast<unsigned>(heads), kSinkThreads, 0, stream>>>(
      terms_of, sink, dsink, tokens, accumulate);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca
