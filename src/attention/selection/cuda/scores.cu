// Scores of pooled blocks by tensor cores with float32 accuracy: every operand is split into two
// TF32 numbers, x = high + low, and three of the four products are summed (Markidis et al., "NVIDIA
// Tensor Core Programmability, Performance & Precision", 2018); the error is of order 2⁻²² · |q| ·
// |k|.
#include "attention/selection/cuda/launch.h"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca {
namespace {

constexpr int kTile = 128;  ///< query blocks and key blocks per CTA
constexpr int kChunk = 32;  ///< dimensions per stage
constexpr int kPitch = 36;  ///< floats per row in shared memory; fragment loads are conflict-free
constexpr int kThreads = 256;
constexpr int kStages = 2;
constexpr int kWarpM = 64;  ///< the tile is divided among 2 × 4 warps
constexpr int kWarpN = 32;
constexpr int kM = kWarpM / 16;
constexpr int kN = kWarpN / 8;
constexpr int kSharedBytes = kStages * 2 * kTile * kPitch * 4;

__device__ void copy_async(float* to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from));
}

/// Loads rows [first, first + kTile), dimensions [c, c + kChunk) of a pooled array. Rows past the
/// last repeat it; their scores are never read.
__device__ void load_tile(const float* rows, int first, int count, int pitch, int c, float* tile) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kChunk / 4; i += kThreads) {
    const int row = i / (kChunk / 4);
    const int column = i % (kChunk / 4) * 4;
    const int from = min(first + row, count - 1);
    copy_async(tile + row * kPitch + column, rows + std::int64_t{from} * pitch + c + column);
  }
}

struct Split {
  std::uint32_t high, low;
};
__device__ std::uint32_t to_tf32(float x) {
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}
__device__ Split split(float x) {
  const std::uint32_t high = to_tf32(x);
  return {high, to_tf32(x - __uint_as_float(high))};
}

__device__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Accumulates the products of one stage.
__device__ void multiply_stage(const float* q, const float* k, float (&sums)[kM][kN][4]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = lane / 4;
  const int column = lane % 4;
#pragma unroll
  for (int c = 0; c < kChunk; c += 8) {
    std::uint32_t b_high[kN][2], b_low[kN][2];
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Split s = split(k[(n * 8 + row) * kPitch + c + column + i * 4]);
        b_high[n][i] = s.high;
        b_low[n][i] = s.low;
      }
    }
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      std::uint32_t a_high[4], a_low[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Split s = split(q[(m * 16 + row + i % 2 * 8) * kPitch + c + column + i / 2 * 4]);
        a_high[i] = s.high;
        a_low[i] = s.low;
      }
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        multiply(sums[m][n], a_low, b_high[n]);
        multiply(sums[m][n], a_high, b_low[n]);
        multiply(sums[m][n], a_high, b_high[n]);
      }
    }
  }
}

/// A monotonic map of scores to positive integers; −0 equals 0, NaN is lowest.
__device__ std::uint32_t ascending(float score) {
  if (score != score) return 1;
  const std::uint32_t bits = __float_as_uint(score + 0.0F);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

__device__ void store_keys(const ScoreArgs& a, int first_row, int first_column,
                           const float (&sums)[kM][kN][4]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + m * 16 + lane / 4 + half * 8;
      if (row >= a.rows) continue;
      std::uint32_t* out = a.keys + (std::int64_t{blockIdx.z} * a.rows + row) * a.key_pitch;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const int column = first_column + n * 8 + lane % 4 * 2;
        if (column >= a.key_pitch) continue;
        *reinterpret_cast<uint2*>(out + column) = {ascending(sums[m][n][half * 2]),
                                                   ascending(sums[m][n][half * 2 + 1])};
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads, 2) scores(ScoreArgs a) {
  extern __shared__ float shared[];
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int last_row = a.row_begin + min(first_row + kTile, a.rows) - 1;
  if (first_column >= a.visible[last_row]) return;
  const int list = a.head_begin + static_cast<int>(blockIdx.z);
  const int head_k = static_cast<int>(std::int64_t{list} * a.heads_k / a.lists);
  const float* q = a.q + std::int64_t{list} * a.q_blocks * a.pitch;
  const float* k = a.k + std::int64_t{head_k} * a.k_blocks * a.pitch;
  const auto load = [&](int c) {
    float* stage = shared + c / kChunk % kStages * 2 * kTile * kPitch;
    load_tile(q, a.row_begin + first_row, a.q_blocks, a.pitch, c, stage);
    load_tile(k, first_column, a.k_blocks, a.pitch, c, stage + kTile * kPitch);
    asm volatile("cp.async.commit_group;");
  };
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int warp_m = warp / 4 * kWarpM;
  const int warp_n = warp % 4 * kWarpN;
  float sums[kM][kN][4] = {};
  load(0);
  for (int c = 0; c < a.pitch; c += kChunk) {
    if (c + kChunk < a.pitch) {
      load(c + kChunk);
      asm volatile("cp.async.wait_group 1;");
    } else {
      asm volatile("cp.async.wait_group 0;");
    }
    __syncthreads();
    const float* stage = shared + c / kChunk % kStages * 2 * kTile * kPitch;
    multiply_stage(stage + warp_m * kPitch, stage + (kTile + warp_n) * kPitch, sums);
    __syncthreads();
  }
  store_keys(a, first_row + warp_m, first_column + warp_n, sums);
}

}  // namespace

void launch_scores(const ScoreArgs& args, cudaStream_t stream) {
  static const bool prepared = [] {
    LONGCA_CUDA(
        cudaFuncSetAttribute(scores, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    return true;
  }();
  static_cast<void>(prepared);
  const auto tiles = [](int n) { return static_cast<unsigned>(ceil_div(n, kTile)); };
  const dim3 grid(tiles(args.k_blocks), tiles(args.rows), static_cast<unsigned>(args.heads));
  scores<<<grid, kThreads, kSharedBytes, stream>>>(args);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca
