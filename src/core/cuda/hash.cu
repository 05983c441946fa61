#include <algorithm>

#include "core/cuda/cuda_device.h"
#include "core/cuda/error.h"

namespace longca {
namespace {

constexpr int kThreads = 256;

/// The finaliser of MurmurHash3 (A. Appleby, 2011).
__device__ std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

/// One hash at a time: all calls use the process's one stream.
__device__ unsigned long long sum;

/// Adds the hash to `to`.
__global__ void hash_words(std::uint64_t seed, const unsigned char* data, std::int64_t bytes,
                           unsigned long long* to) {
  const std::int64_t words = bytes / 8;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  std::uint64_t own = 0;
  for (; i < words; i += stride) {
    const std::uint64_t word = reinterpret_cast<const std::uint64_t*>(data)[i];
    own += mix(word + mix(seed + static_cast<std::uint64_t>(i)));
  }
  if (i == words && bytes % 8 != 0) {
    std::uint64_t word = 0;
    for (std::int64_t b = words * 8; b < bytes; ++b) word = word << 8 | data[b];
    own += mix(word + mix(seed + static_cast<std::uint64_t>(words)));
  }
  for (int step = 16; step > 0; step /= 2) own += __shfl_down_sync(~0U, own, step);
  if (threadIdx.x % 32 == 0) atomicAdd(to, static_cast<unsigned long long>(own));
}

}  // namespace

void cuda_hash_later(std::uint64_t seed, const void* data, std::int64_t bytes,
                     unsigned long long* to, Stream queue) {
  const std::int64_t blocks = std::clamp<std::int64_t>(bytes / 8 / kThreads + 1, 1, 4096);
  hash_words<<<static_cast<unsigned>(blocks), kThreads, 0, static_cast<cudaStream_t>(queue)>>>(
      seed, static_cast<const unsigned char*>(data), bytes, to);
  LONGCA_CUDA(cudaGetLastError());
}

std::uint64_t cuda_hash(std::uint64_t seed, const void* data, std::int64_t bytes, Stream queue) {
  auto* const stream = static_cast<cudaStream_t>(queue);
  unsigned long long result = 0;
  LONGCA_CUDA(
      cudaMemcpyToSymbolAsync(sum, &result, sizeof(sum), 0, cudaMemcpyHostToDevice, stream));
  void* to = nullptr;
  LONGCA_CUDA(cudaGetSymbolAddress(&to, sum));
  cuda_hash_later(seed, data, bytes, static_cast<unsigned long long*>(to), queue);
  LONGCA_CUDA(
      cudaMemcpyFromSymbolAsync(&result, sum, sizeof(sum), 0, cudaMemcpyDeviceToHost, stream));
  LONGCA_CUDA(cudaStreamSynchronize(stream));
  return result + static_cast<std::uint64_t>(bytes);
}

}  // namespace longca
