#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "attention/kernels/common/sink.cuh"
#include "core/cuda/error.h"
#include "core/rounding.h"
#include "parallel/executor/cuda/step_math_kernels.h"
#include "parallel/executor/cuda/vectors.cuh"

namespace longca {
namespace {

constexpr int kWarps = 8;  ///< of a CTA, a row each
constexpr unsigned kMaxGridY = 65535;

template <typename T, typename View>
__device__ T* row_of(const View& tensor, std::int64_t token, std::int64_t head) {
  return static_cast<T*>(tensor.data) + token * tensor.token_stride + head * tensor.head_stride;
}

template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    join_kernel(const float* sink, TensorView o, LseView lse) {
  const std::int64_t head = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t rows_at_once = std::int64_t{gridDim.y} * kWarps;
  for (std::int64_t token = std::int64_t{blockIdx.y} * kWarps + threadIdx.x / 32; token < o.tokens;
       token += rows_at_once) {
    float& of_row = lse.data[head * lse.head_stride + token];
    float joined = of_row;
    float factor = 1;
    add_sink(sink[head], joined, factor);
    T* row = row_of<T>(o, token, head);
    for (std::int64_t i = lane; i < o.dim; i += 32) row[i] = rounded<T>(widen(row[i]) * factor);
    __syncwarp();  // all lanes have read the lse
    if (lane == 0) of_row = joined;
  }
}

}  // namespace

void join_sinks_to_rows(const float* sink, const TensorView& o, const LseView& lse,
                        cudaStream_t stream) {
  if (o.tokens == 0 || o.heads == 0) return;
  const auto ctas =
      static_cast<unsigned>(std::min<std::int64_t>(ceil_div(o.tokens, kWarps), kMaxGridY));
  const dim3 grid(static_cast<unsigned>(o.heads), ctas);
  with_type(o.dtype, [&](auto* type) {
    join_kernel<std::remove_pointer_t<decltype(type)>>
        <<<grid, 32 * kWarps, 0, stream>>>(sink, o, lse);
  });
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca
