#include "attention/selection/cuda/launch.h"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kAll = 0xffffffffU;

/// A row of sort keys, distributed over kWarps warps: element e of a thread is key
/// 32 · (e · kWarps + warp) + lane, so that a ballot over element e is a word of the bitmap. A
/// thread holds kEach elements in registers; with kEach = 0 it reloads them, for rows of any
/// length.
template <int kWarps, int kEach>
struct Row {
  const std::uint32_t* keys;
  int visible;
  int words;
  int warp, lane;
  std::uint32_t held[kEach > 0 ? kEach : 1];

  __device__ int word(int e) const { return e * kWarps + warp; }
  __device__ int each() const { return kEach > 0 ? kEach : ceil_div(words, kWarps); }
  /// 0 past the visible keys, which is below every key.
  __device__ std::uint32_t load(int e) const {
    const int index = word(e) * kWarp + lane;
    return index < visible ? keys[index] : 0;
  }
  __device__ std::uint32_t at(int e) const {
    if constexpr (kEach > 0) {
      return held[e];
    } else {
      return load(e);
    }
  }
  /// Number of this thread's keys ≥ `limit`, which is positive.
  __device__ int count(std::uint32_t limit) const {
    int n = 0;
    if constexpr (kEach > 0) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) n += held[e] >= limit ? 1 : 0;
    } else {
      for (int e = 0; e < each(); ++e) n += load(e) >= limit ? 1 : 0;
    }
    return n;
  }
};

/// Sum over the threads of a row. Successive rounds alternate between two buffers, so that one
/// barrier per round suffices.
template <int kWarps>
__device__ int row_sum(int value, int round) {
  value = __reduce_add_sync(kAll, value);
  if constexpr (kWarps == 1) {
    return value;
  } else {
    __shared__ int sums[2][kWarps];
    if (threadIdx.x % kWarp == 0) sums[round % 2][threadIdx.x / kWarp] = value;
    __syncthreads();
    int sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += sums[round % 2][w];
    return sum;
  }
}

/// The kept-th largest key, or (`exact`) any limit that exactly `kept` keys reach.
struct Limit {
  std::uint32_t key = 0;
  bool exact = false;
};
template <int kWarps, int kEach>
__device__ Limit find_limit(const Row<kWarps, kEach>& row, int kept) {
  Limit limit;
  for (int bit = 31; bit >= 0; --bit) {
    const std::uint32_t next = limit.key | 1U << bit;
    const int reach = row_sum<kWarps>(row.count(next), bit);
    if (reach >= kept) limit.key = next;
    if (reach == kept) {
      limit.exact = true;
      break;
    }
  }
  return limit;
}

/// The lowest `count` set bits.
__device__ std::uint32_t first_bits(std::uint32_t word, int count) {
  std::uint32_t out = 0;
  for (; count > 0 && word != 0; --count) {
    out |= word & (~word + 1);
    word &= word - 1;
  }
  return out;
}

template <int kWarps, int kEach, int kRows>
__global__ void __launch_bounds__(kWarps* kRows* kWarp) top(TopArgs a) {
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const std::int64_t r = std::int64_t{blockIdx.x} * kRows + warp / kWarps;
  if (r >= std::int64_t{a.heads} * a.rows) return;
  const int q_block = a.row_begin + static_cast<int>(r % a.rows);
  const int list = a.head_begin + static_cast<int>(r / a.rows);
  const int kept = a.kept[q_block];
  Row<kWarps, kEach> row{.keys = a.keys + r * a.key_pitch,
                         .visible = a.visible[q_block],
                         .words = a.row_words,
                         .warp = warp % kWarps,
                         .lane = static_cast<int>(threadIdx.x % kWarp),
                         .held = {}};
  if constexpr (kEach > 0) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) row.held[e] = row.load(e);
  }
  std::uint32_t* out = a.words + (std::int64_t{list} * a.q_blocks + q_block) * a.row_words;
  const bool all = kept == row.visible;
  const Limit limit = all ? Limit{1, true} : find_limit(row, kept);
  // Selects the keys above the limit; warp 0 then adds the first of those equal to it.
  const std::uint32_t min_key = limit.exact ? limit.key : limit.key + 1;
  const auto write = [&](int e, std::uint32_t key) {
    if (row.word(e) >= a.row_words) return;
    const bool visible = row.word(e) * kWarp + row.lane < row.visible;
    const std::uint32_t in = __ballot_sync(kAll, visible && (all || key >= min_key));
    if (row.lane == 0) out[row.word(e)] = in;
  };
  if constexpr (kEach > 0) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) write(e, row.held[e]);
  } else {
    for (int e = 0; e < row.each(); ++e) write(e, row.at(e));
  }
  if (limit.exact) return;
  int missing = kept - row_sum<kWarps>(row.count(min_key), 1);
  if constexpr (kWarps > 1) __syncthreads();  // all words are written
  if (row.warp != 0) return;
  for (int w = 0; w < a.row_words && missing > 0; ++w) {
    const int index = w * kWarp + row.lane;
    const bool tie = index < row.visible && row.keys[index] == limit.key;
    const std::uint32_t ties = __ballot_sync(kAll, tie);
    const std::uint32_t in = first_bits(ties, missing);
    if (row.lane == 0 && in != 0) out[w] |= in;
    missing -= __popc(in);
  }
}

template <int kWarps, int kEach, int kRows>
void launch(const TopArgs& a, cudaStream_t stream) {
  const std::int64_t rows = std::int64_t{a.heads} * a.rows;
  top<kWarps, kEach, kRows>
      <<<static_cast<unsigned>(ceil_div(rows, kRows)), kWarps * kRows * kWarp, 0, stream>>>(a);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace

void launch_top(const TopArgs& args, cudaStream_t stream) {
  if (args.row_words <= 16) return launch<1, 16, 4>(args, stream);
  if (args.row_words <= 64) return launch<1, 64, 4>(args, stream);
  if (args.row_words <= 512) return launch<8, 64, 1>(args, stream);
  launch<16, 0, 1>(args, stream);
}

}  // namespace longca
