// Compiled with -fmad=false (CMakeLists.txt): values are bitwise reproducible.
#include <algorithm>

#include "attention/inputs/normal.h"
#include "core/cuda/error.h"
#include "core/philox.h"

namespace longca {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 8192;

__device__ void store(float* to, float value) {
  *to = value;
}
__device__ void store(BFloat16* to, float value) {
  *to = BFloat16(value);
}

/// The topic shift of an element of a clustered tensor.
__device__ float shift_of(const TopicShape& shape, std::int64_t element, PhiloxKey key) {
  const std::int64_t row = element / shape.dim;
  const std::int64_t d = element % shape.dim;
  const std::int64_t head_k = row % shape.heads * shape.heads_k / shape.heads;
  return topic_shift(topic_signs(key, row / shape.heads, head_k, d / kTopicSigns), d);
}

/// Draws the four values of one Philox counter per thread and iteration and stores those in
/// [first, end); `to` is the address of element `first`.
template <typename T>
__global__ void draw(T* to, std::int64_t first, std::int64_t end, PhiloxKey key,
                     std::uint32_t stream, TopicShape topics) {
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
      float value = normal_quantile(words[static_cast<std::size_t>(j)]);
      if (topics.heads_k > 0) value += shift_of(topics, element, key);
      if (element >= first && element < end) store(to + (element - first), value);
    }
  }
}

}  // namespace

void cuda_draw_normal(void* to, DType dtype, std::int64_t first, std::int64_t count,
                      std::uint64_t seed, InputTensor id, const TopicShape& topics, Stream stream) {
  if (count == 0) return;
  const std::int64_t fours = (first + count + 3) / 4 - first / 4;
  const std::int64_t wanted = (fours + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(std::min(wanted, kMaxBlocks));
  const std::uint32_t counter = kInputDomain + static_cast<std::uint32_t>(id);
  const PhiloxKey key = philox_key(seed);
  auto* queue = static_cast<cudaStream_t>(stream);
  if (dtype == DType::float32) {
    draw<<<blocks, kThreads, 0, queue>>>(static_cast<float*>(to), first, first + count, key,
                                         counter, topics);
  } else {
    draw<<<blocks, kThreads, 0, queue>>>(static_cast<BFloat16*>(to), first, first + count, key,
                                         counter, topics);
  }
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca
