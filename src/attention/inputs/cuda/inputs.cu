// Compiled with -fmad=false (CMakeLists.txt): values are bitwise reproducible.
#include <algorithm>

#include "attention/inputs/normal.h"
#include "core/cuda/error.h"
#include "core/philox.h"
#include "core/rounding.h"

namespace longca {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 8192;

/// An element of a tensor from its normal value.
__device__ float shaped_element(float normal, const InputShape& shape, std::int64_t element,
                                PhiloxKey key) {
  if (shape.heads_k == 0) return shaped(normal, shape, {}, 0, 0);
  const std::int64_t row = element / shape.dim;
  const std::int64_t d = element % shape.dim;
  return shaped(normal, shape, direction_signs(shape, key, row, d / kTopicSigns),
                along_direction(shape, row), d);
}

/// Draws the four values of one Philox counter per thread and iteration and stores those in
/// [first, end); `to` is the address of element `first`.
template <typename T>
__global__ void draw(T* to, std::int64_t first, std::int64_t end, PhiloxKey key,
                     std::uint32_t stream, InputShape shape) {
  constexpr std::int64_t kPerChunk = kInputChunk / 4;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t four = first / 4 + std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; four * 4 < end; four += stride) {
    const PhiloxCounter words = philox4x32_10({static_cast<std::uint32_t>(four / kPerChunk), stream,
                                               static_cast<std::uint32_t>(four % kPerChunk), 0},
                                              key);
#pragma unroll
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::int64_t element = four * 4 + j;
      if (element < first || element >= end) continue;
      const float normal = normal_quantile(words[static_cast<std::size_t>(j)]);
      to[element - first] = T(shaped_element(normal, shape, element, key));
    }
  }
}

}  // namespace

void cuda_draw(void* to, DType dtype, std::int64_t first, std::int64_t count, std::uint64_t seed,
               InputTensor id, const InputShape& shape, Stream stream) {
  if (count == 0) return;
  const std::int64_t fours = ceil_div(first + count, 4) - first / 4;
  const std::int64_t wanted = ceil_div(fours, kThreads);
  const auto blocks = static_cast<unsigned>(std::min(wanted, kMaxBlocks));
  const std::uint32_t counter = kInputDomain + static_cast<std::uint32_t>(id);
  const PhiloxKey key = philox_key(seed);
  auto* queue = static_cast<cudaStream_t>(stream);
  with_type_of(dtype, [&]<typename T>(T) {
    draw<<<blocks, kThreads, 0, queue>>>(static_cast<T*>(to), first, first + count, key, counter,
                                         shape);
  });
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca
