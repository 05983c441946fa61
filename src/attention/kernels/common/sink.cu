#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "attention/kernels/common/sink.cuh"
#include "attention/kernels/common/sink.h"
#include "core/cuda/element_type.cuh"
#include "core/cuda/error.h"
#include "core/dtype.h"

namespace longca {
namespace {

constexpr int kWarps = 32;  ///< of the CTA of a head

template <typename T>
__device__ const T* row_of(const ConstTensorView& tensor, std::int64_t token, std::int64_t head) {
  return static_cast<const T*>(tensor.data) + token * tensor.token_stride +
         head * tensor.head_stride;
}

/// One CTA per head, a row per warp and step: each lane sums its own elements of all its rows, so
/// that the order is fixed.
template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    gradient_kernel(const float* sink, float* dsink, bool added, ConstTensorView o,
                    ConstTensorView dout, ConstLseView lse) {
  const std::int64_t head = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  double own = 0;
#pragma unroll 4
  for (std::int64_t token = warp; token < o.tokens; token += kWarps) {
    const float of_row = lse.data[head * lse.head_stride + token];
    if (of_row == -INFINITY) continue;  // no keys, and a sink of −∞
    const T* values = row_of<T>(o, token, head);
    const T* gradients = row_of<T>(dout, token, head);
    float delta = 0;
    for (std::int64_t i = lane; i < o.dim; i += 32)
      delta += static_cast<float>(values[i]) * static_cast<float>(gradients[i]);
    own += static_cast<double>(expf(sink[head] - of_row) * delta);
  }
  store_sink_gradient<32 * kWarps>(own, added, dsink[head]);
}

}  // namespace

void sum_sink_gradients(const float* sink, float* dsink, bool added, const ConstTensorView& o,
                        const ConstTensorView& dout, const ConstLseView& lse, cudaStream_t stream) {
  if (o.heads == 0) return;
  const auto launch = [&](auto kernel) {
    kernel<<<static_cast<unsigned>(o.heads), 32 * kWarps, 0, stream>>>(sink, dsink, added, o, dout,
                                                                       lse);
  };
  with_type(o.dtype, [&]<typename T>(T*) { launch(gradient_kernel<T>); });
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca
