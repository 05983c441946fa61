#include <utility>

#include "attention/kernels/common/block_map.h"
#include "attention/kernels/slice/device_lists.h"
#include "core/cuda/error.h"
#include "core/cuda/upload.h"
#include "core/device.h"
#include "core/rounding.h"

namespace longca::slice {
namespace {

constexpr int kThreads = 64;

/// Where a thread finds the bits of its query tile.
struct TileArgs {
  BlockBits bits;               ///< [lists, query blocks, words], a bit per key block
  const std::int32_t* q_block;  ///< BlockPlan::q_block
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

// A thread per tile, twice: the first pass counts, the host places the lists, the second writes
// them.
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

/// Where a thread finds the bits of its key tile.
struct TransposedTileArgs {
  BlockBits bits;                ///< transposed: [lists, key blocks, words], a bit per query block
  const std::int32_t* q_bounds;  ///< of the query blocks, in tokens
  int tiles_per_list;
  int tiles;
  int block_sub_tiles;
  int sub_tiles;
  int tile_tokens;
  int window_blocks;

  __device__ TransposedBlockTile tile(int i) const {
    const std::int64_t first = std::int64_t{i / tiles_per_list} * bits.rows;
    const int sub_tile = i % tiles_per_list * 2;
    const auto row = [&](int index) {
      return bits.words + (first + index / block_sub_tiles) * bits.row_words;
    };
    return {{row(sub_tile), sub_tile + 1 < sub_tiles ? row(sub_tile + 1) : nullptr},
            bits.row_words,
            q_bounds,
            tile_tokens,
            window_blocks};
  }
};

__global__ void count_tiles(const TransposedTileArgs args, TransposedBlockCounts* counts) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= args.tiles) return;
  counts[i] = walk_transposed_block_tile(args.tile(i), [](const QuerySegment&) {});
}

__global__ void list_tiles(const TransposedTileArgs args, const KeyTile* tiles,
                           QuerySegment* segments) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= args.tiles) return;
  QuerySegment* to = segments + tiles[i].segments_begin;
  walk_transposed_block_tile(args.tile(i), [&](const QuerySegment& segment) { *to++ = segment; });
}

}  // namespace

DeviceBlockTiles make_device_block_lists(const Mask& mask, int pack,
                                         const cost::Platform& platform) {
  Device& gpu = Device::get(DeviceKind::cuda);
  const auto stream = static_cast<cudaStream_t>(gpu.stream());
  const BlockPlan plan = block_plan(mask, pack);
  if (plan.tiles() == 0) return {place_block_tiles(plan, {}, platform).lists, {}, {}};
  const Buffer q_block = on_device(plan.q_block);
  const TileArgs args = {BlockMap::of(mask).bits(), q_block.as<std::int32_t>(),
                         plan.tiles_per_list(), static_cast<int>(plan.tiles()),
                         plan.block_sub_tiles};
  const auto blocks = static_cast<unsigned>(ceil_div(plan.tiles(), kThreads));
  std::vector<BlockTileCounts> counts(static_cast<std::size_t>(plan.tiles()));
  const Buffer device_counts(gpu.memory(), plan.tiles() * sizeof(BlockTileCounts));
  count_tiles<<<blocks, kThreads, 0, stream>>>(args, device_counts.as<BlockTileCounts>());
  LONGCA_CUDA(cudaGetLastError());
  gpu.copy(counts.data(), device_counts.data(), device_counts.bytes());

  BlockTiles placed = place_block_tiles(plan, counts, platform);
  DeviceBlockTiles made = {std::move(placed.lists),
                           Buffer(gpu.memory(), placed.partial * sizeof(PartialTile)),
                           Buffer(gpu.memory(), placed.runs * sizeof(FullRun))};
  const Buffer tiles = on_device(made.lists.tiles);
  list_tiles<<<blocks, kThreads, 0, stream>>>(args, device_counts.as<BlockTileCounts>(),
                                              tiles.as<QueryTile>(), made.partial.as<PartialTile>(),
                                              made.runs.as<FullRun>());
  LONGCA_CUDA(cudaGetLastError());
  gpu.synchronize();  // buffers that the kernel reads are freed on return
  return made;
}

DeviceTransposedTiles make_device_transposed_lists(const Mask& mask, int pack,
                                                   const BackwardWork& work) {
  Device& gpu = Device::get(DeviceKind::cuda);
  const auto stream = static_cast<cudaStream_t>(gpu.stream());
  const TransposedBlockPlan plan = transposed_block_plan(mask, pack, work);
  if (plan.tiles() == 0) return {place_transposed_block_tiles(plan, work, {}).lists, {}};
  const BlockMap& map = BlockMap::of(mask);
  const OwnedBlockBits seen = transposed_bits(map, gpu.stream());
  const TransposedTileArgs args = {seen.bits,
                                   map.q_bounds(),
                                   plan.tiles_per_list(),
                                   static_cast<int>(plan.tiles()),
                                   plan.block_sub_tiles,
                                   plan.sub_tiles(),
                                   kBackwardRows / pack,
                                   plan.window_blocks};
  const auto blocks = static_cast<unsigned>(ceil_div(plan.tiles(), kThreads));
  std::vector<TransposedBlockCounts> counts(static_cast<std::size_t>(plan.tiles()));
  const Buffer device_counts(
      gpu.memory(), plan.tiles() * static_cast<std::int64_t>(sizeof(TransposedBlockCounts)));
  count_tiles<<<blocks, kThreads, 0, stream>>>(args, device_counts.as<TransposedBlockCounts>());
  LONGCA_CUDA(cudaGetLastError());
  gpu.copy(counts.data(), device_counts.data(), device_counts.bytes());

  TransposedBlockTiles placed =
      place_transposed_block_tiles(plan, work, {counts.data(), counts.size()});
  DeviceTransposedTiles made = {
      std::move(placed.lists),
      Buffer(gpu.memory(), placed.segments * static_cast<std::int64_t>(sizeof(QuerySegment)))};
  const Buffer tiles = on_device(made.lists.tiles);
  list_tiles<<<blocks, kThreads, 0, stream>>>(args, tiles.as<KeyTile>(),
                                              made.segments.as<QuerySegment>());
  LONGCA_CUDA(cudaGetLastError());
  gpu.synchronize();  // buffers that the kernel reads are freed on return
  return made;
}

}  // namespace longca::slice
