#include <algorithm>
#include <utility>

#include "attention/kernels/common/block_map.h"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kScanThreads = 1024;
constexpr unsigned kAll = 0xffffffffU;

cudaStream_t queue(Stream stream) {
  return static_cast<cudaStream_t>(stream);
}

unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>(ceil_div(items, per_block));
}

/// One warp per row.
__global__ void count_rows(BlockBits bits, std::int32_t* counts) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (row >= bits.all_rows()) return;
  const std::uint32_t* words = bits.words + row * bits.row_words;
  int count = 0;
  for (int w = static_cast<int>(threadIdx.x % kWarp); w < bits.row_words; w += kWarp) {
    count += __popc(words[w]);
  }
  count = __reduce_add_sync(kAll, count);
  if (threadIdx.x % kWarp == 0) counts[row] = count;
}

/// Exclusive prefix sum of `value` over the CTA's threads, and its sum in *total.
__device__ std::int64_t sum_before(std::int64_t value, std::int64_t* total) {
  __shared__ std::int64_t warps[kScanThreads / kWarp];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  std::int64_t sum = value;
  for (int step = 1; step < kWarp; step *= 2) {
    const std::int64_t other = __shfl_up_sync(kAll, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == kWarp - 1) warps[warp] = sum;
  __syncthreads();
  std::int64_t before = 0;
  std::int64_t all = 0;
  for (int w = 0; w < kScanThreads / kWarp; ++w) {
    if (w < warp) before += warps[w];
    all += warps[w];
  }
  __syncthreads();  // before the next call overwrites `warps`
  *total = all;
  return before + sum - value;
}

/// offsets[i] = counts[0] + … + counts[i − 1] for i in [0, rows], by one CTA, 4096 rows at a time.
__global__ void __launch_bounds__(kScanThreads)
    scan_counts(const std::int32_t* counts, std::int64_t rows, std::int64_t* offsets) {
  constexpr int kEach = 4;
  std::int64_t carry = 0;
  for (std::int64_t first = 0; first < rows; first += kScanThreads * kEach) {
    const std::int64_t mine = first + std::int64_t{threadIdx.x} * kEach;
    std::int64_t values[kEach];
    std::int64_t sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      values[i] = mine + i < rows ? counts[mine + i] : 0;
      sum += values[i];
    }
    std::int64_t total = 0;
    std::int64_t before = carry + sum_before(sum, &total);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (mine + i < rows) offsets[mine + i] = before;
      before += values[i];
    }
    carry += total;
  }
  if (threadIdx.x == 0) offsets[rows] = carry;
}

/// One warp per row; lane b writes column 32 w + b of word w.
__global__ void write_lists(BlockBits bits, const std::int64_t* offsets, std::int32_t* indices) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (row >= bits.all_rows()) return;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const std::uint32_t* words = bits.words + row * bits.row_words;
  std::int32_t* out = indices + offsets[row];
  for (int first = 0; first < bits.row_words; first += kWarp) {
    const std::uint32_t mine = first + lane < bits.row_words ? words[first + lane] : 0;
    const int count = min(kWarp, bits.row_words - first);
    for (int w = 0; w < count; ++w) {
      const std::uint32_t word = __shfl_sync(kAll, mine, w);
      if (word >> lane & 1) {
        out[__popc(word & ((1U << lane) - 1))] = (first + w) * kWarp + lane;
      }
      out += __popc(word);
    }
  }
}

/// One warp per 32 × 32 bits: bit r of the ballot over column c is row r's bit c.
__global__ void transpose_bits(BlockBits from, BlockBits to, std::uint32_t* words) {
  const std::int64_t tile = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  const std::int64_t tiles = std::int64_t{from.row_words} * to.row_words;
  if (tile >= tiles * from.heads) return;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const std::int64_t head = tile / tiles;
  const int row_word = static_cast<int>(tile % tiles % to.row_words);
  const int column_word = static_cast<int>(tile % tiles / to.row_words);
  const int row = row_word * kWarp + lane;
  const std::uint32_t word =
      row < from.rows ? from.words[(head * from.rows + row) * from.row_words + column_word] : 0;
  std::uint32_t mine = 0;
  for (int c = 0; c < kWarp; ++c) {
    const std::uint32_t ballot = __ballot_sync(kAll, word >> c & 1);
    if (lane == c) mine = ballot;
  }
  const int column = column_word * kWarp + lane;
  if (column < from.columns) words[(head * to.rows + column) * to.row_words + row_word] = mine;
}

MemoryTracker& device_memory() {
  return Device::get(DeviceKind::cuda).memory();
}

DeviceBlockLists lists_of(const BlockBits& bits, std::int64_t kept, Stream stream) {
  const std::int64_t rows = bits.all_rows();
  DeviceBlockLists lists{Buffer(device_memory(), (rows + 1) * 8),
                         Buffer(device_memory(), kept * 4)};
  const Buffer counts(device_memory(), rows * 4);  // reused in stream order only
  count_kept(bits, counts.as<std::int32_t>(), stream);
  auto* offsets = lists.offsets_buffer.as<std::int64_t>();
  scan_counts<<<1, kScanThreads, 0, queue(stream)>>>(counts.as<std::int32_t>(), rows, offsets);
  LONGCA_CUDA(cudaGetLastError());
  if (rows == 0) return lists;
  write_lists<<<blocks_for(rows, kWarps), kThreads, 0, queue(stream)>>>(
      bits, offsets, lists.indices_buffer.as<std::int32_t>());
  LONGCA_CUDA(cudaGetLastError());
  return lists;
}

}  // namespace

void count_kept(const BlockBits& bits, std::int32_t* counts, Stream stream) {
  const std::int64_t rows = bits.all_rows();
  if (rows == 0) return;
  count_rows<<<blocks_for(rows, kWarps), kThreads, 0, queue(stream)>>>(bits, counts);
  LONGCA_CUDA(cudaGetLastError());
}

DeviceBlockLists kept_lists(const BlockMap& map, Stream stream) {
  return lists_of(map.bits(), map.kept(), stream);
}

OwnedBlockBits transposed_bits(const BlockMap& map, Stream stream) {
  const BlockBits from = map.bits();
  BlockBits to{.heads = from.heads,
               .rows = from.columns,
               .columns = from.rows,
               .row_words = static_cast<std::int32_t>(words_per_row(from.rows))};
  Buffer buffer(device_memory(), to.all_rows() * to.row_words * 4);
  auto* words = buffer.as<std::uint32_t>();
  to.words = words;
  const std::int64_t tiles = std::int64_t{from.row_words} * to.row_words * from.heads;
  if (tiles > 0) {
    transpose_bits<<<blocks_for(tiles, kWarps), kThreads, 0, queue(stream)>>>(from, to, words);
    LONGCA_CUDA(cudaGetLastError());
  }
  return {std::move(buffer), to};
}

DeviceBlockLists transposed_lists(const BlockMap& map, Stream stream) {
  const OwnedBlockBits bits = transposed_bits(map, stream);
  return lists_of(bits.bits, map.kept(), stream);
}

}  // namespace longca
