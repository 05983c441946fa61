#include "attention/adapters/flashinfer/launch.h"
#include "attention/kernels/common/logarithms.h"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca::flashinfer {
namespace {

constexpr int kSide = 32;

__global__ void transpose_lse(const float* row_lse, LseView lse) {
  __shared__ float tile[kSide][kSide + 1];
  const std::int64_t token = std::int64_t{blockIdx.x} * kSide;
  const std::int64_t head = std::int64_t{blockIdx.y} * kSide;
  for (int i = threadIdx.y; i < kSide; i += blockDim.y) {
    if (token + i < lse.tokens && head + threadIdx.x < lse.heads) {
      tile[i][threadIdx.x] = row_lse[(token + i) * lse.heads + head + threadIdx.x];
    }
  }
  __syncthreads();
  for (int i = threadIdx.y; i < kSide; i += blockDim.y) {
    if (token + threadIdx.x < lse.tokens && head + i < lse.heads) {
      lse.data[(head + i) * lse.head_stride + token + threadIdx.x] = tile[threadIdx.x][i] * kLn2;
    }
  }
}

/// One CTA per row.
__global__ void list_keys(KeyPages keys, std::int32_t* pages) {
  const std::int64_t row = blockIdx.x;
  std::int32_t* out = pages + keys.first[row];
  for (std::int64_t i = keys.offsets[row]; i < keys.offsets[row + 1]; ++i) {
    const std::int32_t block = keys.indices[i];
    const std::int32_t begin = keys.k_bounds[block];
    const std::int32_t size = keys.k_bounds[block + 1] - begin;
    for (std::int32_t k = threadIdx.x; k < size; k += blockDim.x) out[k] = begin + k;
    out += size;
  }
}

}  // namespace

void launch_transpose_lse(const float* row_lse, const LseView& lse, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(ceil_div(lse.tokens, kSide)),
                  static_cast<unsigned>(ceil_div(lse.heads, kSide)));
  transpose_lse<<<grid, dim3(kSide, 8), 0, stream>>>(row_lse, lse);
  LONGCA_CUDA(cudaGetLastError());
}

void launch_list_keys(const KeyPages& keys, std::int32_t* pages, cudaStream_t stream) {
  list_keys<<<static_cast<unsigned>(keys.rows), 64, 0, stream>>>(keys, pages);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca::flashinfer
