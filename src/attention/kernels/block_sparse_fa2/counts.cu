#include "attention/kernels/block_sparse_fa2/launch.h"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca::fa2_sparse {
namespace {

constexpr int kWarps = 8;

/// The number of set bits of word `word` of a row within blocks [begin, end).
__device__ __forceinline__ int bits_within(std::uint32_t bits, int word, int begin, int end) {
  const int from = max(begin - word * 32, 0);
  const int to = min(end - word * 32, 32);
  if (from >= to) return 0;
  return __popc(bits >> from << from << (32 - to));
}

/// One warp per (list, tile).
__global__ void __launch_bounds__(kWarps * 32)
    count_kernel(const BlockArgs blocks, const TileGrid grid, int tiles, std::int32_t* counts) {
  const int work = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / 32);
  if (work >= blocks.lists * tiles) return;
  const int first = work % tiles * grid.tile_tokens;
  const Tokens own{first, min(first + grid.tile_tokens, grid.own_tokens)};
  const Tokens seen = grid.by_queries ? blocks.band.keys_of(own) : blocks.band.rows_of(own);
  const int begin = seen.begin / grid.other_block;
  const int end = ceil_div(seen.end, grid.other_block);
  const std::uint32_t* row =
      blocks.words +
      (static_cast<std::int64_t>(work / tiles) * blocks.list_rows + first / grid.own_block) *
          blocks.row_words;
  int count = 0;
  for (int w = static_cast<int>(threadIdx.x % 32); w < blocks.row_words; w += 32) {
    count += bits_within(row[w], w, begin, end);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) count += __shfl_xor_sync(~0U, count, step);
  if (threadIdx.x % 32 == 0) counts[work] = count;
}

}  // namespace

void count_blocks(const BlockArgs& blocks, const TileGrid& grid, std::int32_t* counts,
                  cudaStream_t stream) {
  const int rows = blocks.lists * grid.tiles();
  if (rows == 0) return;
  count_kernel<<<static_cast<unsigned>(ceil_div(rows, kWarps)), kWarps * 32, 0, stream>>>(
      blocks, grid, grid.tiles(), counts);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca::fa2_sparse
