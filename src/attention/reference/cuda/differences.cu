#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "attention/reference/cuda/differences.h"
#include "attention/reference/cuda/tile_shape.cuh"
#include "core/cuda/element_type.cuh"
#include "core/cuda/error.h"

namespace longca {
namespace {

using reference::row_of;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

/// max of two non-negative numbers; NaN if one is NaN.
__device__ double larger(double a, double b) {
  return isnan(a) || a > b ? a : b;
}

__device__ TileDifference joined(TileDifference a, const TileDifference& b) {
  a.squared += b.squared;
  a.reference_squared += b.reference_squared;
  a.largest = larger(a.largest, b.largest);
  a.forbidden |= b.forbidden;
  return a;
}

__device__ TileDifference shuffled(const TileDifference& x, int step) {
  TileDifference other;
  other.squared = __shfl_xor_sync(~0U, x.squared, step);
  other.reference_squared = __shfl_xor_sync(~0U, x.reference_squared, step);
  other.largest = __shfl_xor_sync(~0U, x.largest, step);
  other.forbidden = __shfl_xor_sync(~0U, x.forbidden, step);
  return other;
}

/// One CTA per (compared tile, head).
template <typename T>
__global__ __launch_bounds__(kThreads) void tile_differences(DifferenceArgs a) {
  const std::int64_t tile = a.tiles[blockIdx.x];
  const std::int64_t head_index = blockIdx.y;
  const std::int64_t first = tile * kTile;
  const std::int64_t place = head_index * gridDim.x + blockIdx.x;
  const auto dim = static_cast<int>(a.x.dim);
  const auto tokens = static_cast<int>(min(std::int64_t{kTile}, a.x.tokens - first));
  const std::uint64_t seen = a.statistics[head_index * tile_count(a.x.tokens) + tile].seen;
  const float* reference = a.reference + (head_index * a.x.tokens + first) * dim;
  TileDifference own;
  for (int i = threadIdx.x; i < tokens * dim; i += kThreads) {
    const int token = i / dim;
    const auto found =
        static_cast<float>(row_of<T>(a.x, first + token, a.heads[head_index])[i % dim]);
    const auto expected = static_cast<double>(reference[i]);
    const double error = fabs(static_cast<double>(found) - expected);
    own.squared += error * error;
    own.reference_squared += expected * expected;
    own.largest = larger(error, own.largest);
    if ((seen >> token & 1) == 0 && !(found == 0)) own.forbidden = 1;
  }
  for (int step = 16; step > 0; step /= 2) own = joined(own, shuffled(own, step));
  __shared__ TileDifference of_warps[kWarps];
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kWarps; ++w) own = joined(own, of_warps[w]);
  a.differences[place] = own;
}

}  // namespace

void find_differences(const DifferenceArgs& args, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(args.count), static_cast<unsigned>(args.head_count));
  if (grid.x == 0 || grid.y == 0) return;
  with_type(args.x.dtype,
            [&]<typename T>(T*) { tile_differences<T><<<grid, kThreads, 0, stream>>>(args); });
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca
