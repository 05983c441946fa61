#include <utility>

#include "attention/kernels/slice/device_block_lists.h"
#include "core/cuda/error.h"
#include "core/device.h"

namespace longca::slice {
namespace {

constexpr int kThreads = 64;

/// Where a thread finds the bits of its tile.
struct TileArgs {
  BlockBits bits;
  const std::int32_t* q_block;  ///< BlockPlan
  int tiles_per_list;
  int tiles;
  int block_sub_tiles;

  __device__ BlockTile tile(int i) const {
    const std::int64_t first = std::int64_t{i / tiles_per_list} * bits.rows;
    const std::int32_t* blocks = q_block + i % tiles_per_list * kRowGroups;
    const auto row = [&](int group) {
      return bits.words + (first + blocks[group]) * bits.row_words;
    };
    return {{row(0), row(1)}, bits.row_words, block_sub_tiles};
  }
};

__global__ void count_tiles(const TileArgs args, BlockTileCounts* counts) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < args.tiles) counts[i] = count_block_tile(args.tile(i));
}

__global__ void list_tiles(const TileArgs args, const BlockTileCounts* counts,
                           const QueryTile* tiles, PartialTile* partial, FullRun* runs) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= args.tiles) return;
  list_block_tile(args.tile(i), counts[i], partial + tiles[i].partial_begin,
                  runs + tiles[i].runs_begin);
}

template <typename T>
Buffer uploaded(Device& gpu, const std::vector<T>& values) {
  Buffer buffer(gpu.memory(), static_cast<std::int64_t>(values.size() * sizeof(T)));
  gpu.copy(buffer.data(), values.data(), buffer.bytes());
  return buffer;
}

}  // namespace

DeviceBlockTiles make_device_block_lists(const Mask& mask, int pack) {
  Device& gpu = Device::get(DeviceKind::cuda);
  const auto stream = static_cast<cudaStream_t>(gpu.stream());
  const BlockPlan plan = block_plan(mask, pack);
  if (plan.tiles() == 0) return {place_block_tiles(plan, {}).lists, {}, {}};
  const Buffer q_block = uploaded(gpu, plan.q_block);
  const TileArgs args = {BlockMap::of(mask).bits(), q_block.as<std::int32_t>(),
                         plan.tiles_per_list(), static_cast<int>(plan.tiles()), plan.block_sub_tiles};
  const auto blocks = static_cast<unsigned>((plan.tiles() + kThreads - 1) / kThreads);
  std::vector<BlockTileCounts> counts(static_cast<std::size_t>(plan.tiles()));
  const Buffer device_counts(gpu.memory(), plan.tiles() * sizeof(BlockTileCounts));
  count_tiles<<<blocks, kThreads, 0, stream>>>(args, device_counts.as<BlockTileCounts>());
  LONGCA_CUDA(cudaGetLastError());
  gpu.copy(counts.data(), device_counts.data(), device_counts.bytes());

  BlockTiles placed = place_block_tiles(plan, counts);
  DeviceBlockTiles made = {std::move(placed.lists),
                           Buffer(gpu.memory(), placed.partial * sizeof(PartialTile)),
                           Buffer(gpu.memory(), placed.runs * sizeof(FullRun))};
  const Buffer tiles = uploaded(gpu, made.lists.tiles);
  list_tiles<<<blocks, kThreads, 0, stream>>>(args, device_counts.as<BlockTileCounts>(),
                                              tiles.as<QueryTile>(), made.partial.as<PartialTile>(),
                                              made.runs.as<FullRun>());
  LONGCA_CUDA(cudaGetLastError());
  gpu.synchronize();  // buffers that the kernel reads are freed on return
  return made;
}

}  // namespace longca::slice
