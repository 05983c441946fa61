// Compiled with -fmad=false (CMakeLists.txt): the values are part of what the program promises.
#include <algorithm>

#include "attention/cuda/inputs.h"
#include "attention/normal.h"
#include "core/cuda/error.h"
#include "core/philox.h"

namespace longca {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 8192;

__device__ void store(float* to, float value) {
  *to = value;
}
__device__ void store(BFloat16* to, float value) {
  *to = BFloat16(value);
}

/// Four values of one Philox counter per thread and step.
template <typename T>
__global__ void draw(T* data, std::int64_t elements, PhiloxKey key, std::uint32_t stream) {
  constexpr std::int64_t kPerChunk = kInputChunk / 4;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t four = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; four * 4 < elements; four += stride) {
    const PhiloxCounter words = philox4x32_10({static_cast<std::uint32_t>(four / kPerChunk), stream,
                                               static_cast<std::uint32_t>(four % kPerChunk), 0},
                                              key);
#pragma unroll
    for (std::int64_t j = 0; j < 4; ++j) {
      const float value = normal_quantile(words[static_cast<std::size_t>(j)]);
      if (four * 4 + j < elements) store(data + four * 4 + j, value);
    }
  }
}

}  // namespace

void cuda_draw_normal(const TensorView& tensor, std::uint64_t seed, InputTensor id, Stream stream) {
  const std::int64_t elements = tensor.tokens * tensor.heads * tensor.dim;
  if (elements == 0) return;
  const std::int64_t wanted = (elements + 4 * kThreads - 1) / (4 * kThreads);
  const auto blocks = static_cast<unsigned>(std::min(wanted, kMostBlocks));
  const std::uint32_t counter = kInputDomain + static_cast<std::uint32_t>(id);
  auto* queue = static_cast<cudaStream_t>(stream);
  if (tensor.dtype == DType::float32) {
    draw<<<blocks, kThreads, 0, queue>>>(static_cast<float*>(tensor.data), elements,
                                         philox_key(seed), counter);
  } else {
    draw<<<blocks, kThreads, 0, queue>>>(static_cast<BFloat16*>(tensor.data), elements,
                                         philox_key(seed), counter);
  }
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca
