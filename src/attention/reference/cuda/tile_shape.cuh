#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "attention/reference/tile_mask.h"
#include "core/tensor.h"

namespace longca::reference {

inline constexpr int kTokens = static_cast<int>(kTile);
inline constexpr int kLanes = 16;  ///< threads that share the rows of one tile

/// The thread layout of a CTA: 16 lanes share 4 rows of a tile, and each thread has 4 × 4 scores
/// and 4 × kDim / 16 elements of the output.
template <typename T, typename Real, int kHeadDim>
struct TileShape {
  using Element = T;                     ///< of the inputs
  using Exact = Real;                    ///< of the reference's arithmetic
  static constexpr int kDim = kHeadDim;  ///< head_dim, zero-padded; so is a smaller one of v
  static constexpr int kRows = 4;        ///< per thread
  static constexpr int kThreads = kTokens / kRows * kLanes;
  static constexpr int kRowStep = kTokens / kRows;  ///< stride between a thread's rows
  static constexpr int kScores = kTokens / kLanes;  ///< scores per row and thread
  static constexpr int kColumns = kDim / kLanes;    ///< output columns per thread
  static constexpr int kPack = 16 / static_cast<int>(sizeof(T));  ///< elements per 16 bytes
  static constexpr int kStride = kDim + kPack;  ///< of a tile's row; padded against bank conflicts
  /// Consecutive columns per thread.
  static constexpr int kPiece = kColumns < kPack ? kColumns : kPack;
  /// Weights are [partner token, row] with a thread's rows adjacent.
  static constexpr int kWeightStride = kTokens + 16 / static_cast<int>(sizeof(Real));
  static constexpr int kSameStride = kTokens + 4;
  /// Exact arithmetic is finer than float32: the emulation computes scores and sums of its own.
  /// Else it shares the scores, and its accumulators hold the rounding errors only.
  static constexpr bool kTwice = sizeof(Real) > sizeof(float);
  /// Products of float16 fill float32's 24 bits, so that each addition rounds: scores are summed in
  /// parts, or they would use up a sixth of lse's bound. Products of bfloat16 leave 8 bits.
  static constexpr bool kSumsInParts = std::is_same_v<T, __half>;
  /// CTAs per SM, which overlap one's loads with the other's computation if their tiles fit.
  static constexpr int kBlocks = sizeof(T) == 2 && kDim <= 128 ? 2 : 1;
  static constexpr int kTileElements = kTokens * kStride;

  static __device__ int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  static __device__ int group() { return static_cast<int>(threadIdx.x) / kLanes; }
  static __device__ int row(int i) { return i * kRowStep + group(); }
  static __device__ int token(int j) { return j * kLanes + lane(); }
  static __device__ int column(int n) {
    return n / kPiece * kPiece * kLanes + lane() * kPiece + n % kPiece;
  }
};

/// x[token, head].
template <typename T>
__device__ const T* row_of(const ConstTensorView& x, std::int64_t token, std::int64_t head) {
  return static_cast<const T*>(x.data) + token * x.token_stride + head * x.head_stride;
}

/// Reduction over the lanes that share a row.
template <typename T>
__device__ T sum_of_lanes(T x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0U, x, step);
  return x;
}
template <typename T>
__device__ T largest_of_lanes(T x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = max(x, __shfl_xor_sync(~0U, x, step));
  return x;
}

inline __device__ float exponential(float x) {
  return expf(x);
}
inline __device__ double exponential(double x) {
  return exp(x);
}

inline __device__ float tangent(float x) {
  return tanhf(x);
}
inline __device__ double tangent(double x) {
  return tanh(x);
}

/// RowStatistics::delta_magnitude of a row with ‖O‖² (or Σ (P ‖v‖)²) and ‖dO‖².
inline __device__ float delta_magnitude(double delta, double o_squared, double dout_squared,
                                        std::int64_t dim) {
  const double random = sqrt(o_squared * dout_squared / static_cast<double>(dim));
  return static_cast<float>(max(random, fabs(delta)));
}

/// x rounded to the second argument's type.
inline __device__ float rounded(float x, const __nv_bfloat16*) {
  return __bfloat162float(__float2bfloat16_rn(x));
}
inline __device__ float rounded(float x, const __half*) {
  return __half2float(__float2half_rn(x));
}
inline __device__ float rounded(float x, const float*) {
  return x;
}

/// The two elements of a word.
inline __device__ float2 widened(unsigned word, const __nv_bfloat16*) {
  // A bfloat16 is the upper 16 bits of a float32.
  return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
}
inline __device__ float2 widened(unsigned word, const __half*) {
  return __half22float2(*reinterpret_cast<const __half2*>(&word));
}

/// kCount consecutive elements of shared memory, aligned to their size, as float32.
template <typename T, int kCount>
requires(sizeof(T) == 2) __device__ void load_elements(const T* from, float (&to)[kCount]) {
  static_assert(kCount % 2 == 0);
  unsigned words[kCount / 2];
  if constexpr (kCount % 8 == 0) {
#pragma unroll
    for (int i = 0; i < kCount / 8; ++i) {
      const uint4 x = reinterpret_cast<const uint4*>(from)[i];
      words[4 * i] = x.x, words[4 * i + 1] = x.y, words[4 * i + 2] = x.z, words[4 * i + 3] = x.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) words[i] = reinterpret_cast<const unsigned*>(from)[i];
  }
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    const float2 pair = widened(words[i], from);
    to[2 * i] = pair.x, to[2 * i + 1] = pair.y;
  }
}
template <int kCount>
__device__ void load_elements(const float* from, float (&to)[kCount]) {
  static_assert(kCount % 4 == 0);
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i) {
    const float4 x = reinterpret_cast<const float4*>(from)[i];
    to[4 * i] = x.x, to[4 * i + 1] = x.y, to[4 * i + 2] = x.z, to[4 * i + 3] = x.w;
  }
}
template <int kCount>
__device__ void load_elements(const double* from, double (&to)[kCount]) {
  static_assert(kCount % 2 == 0);
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    const double2 x = reinterpret_cast<const double2*>(from)[i];
    to[2 * i] = x.x, to[2 * i + 1] = x.y;
  }
}

/// Loads rows [first, first + 64) of a head into shared memory [kTokens, kDim], zero-padded.
template <typename Shape>
__device__ void load_tile(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                          typename Shape::Element* to) {
  using T = typename Shape::Element;
  constexpr int kPacks = Shape::kDim / Shape::kPack;
  const T* base = row_of<T>(x, first, head);
  const auto valid = static_cast<int>(min(static_cast<std::int64_t>(kTokens), x.tokens - first));
  const auto dim = static_cast<int>(x.dim);
  const bool packed = dim % Shape::kPack == 0 && x.head_stride % Shape::kPack == 0 &&
                      x.token_stride % Shape::kPack == 0 &&
                      reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < kTokens * kPacks; i += Shape::kThreads) {
    const int row = i / kPacks;
    const int column = i % kPacks * Shape::kPack;
    T* out = to + row * Shape::kStride + column;
    const T* in = base + row * x.token_stride + column;
    if (packed) {
      uint4 value = make_uint4(0, 0, 0, 0);
      if (row < valid && column < dim) value = __ldg(reinterpret_cast<const uint4*>(in));
      *reinterpret_cast<uint4*>(out) = value;
    } else {
      for (int c = 0; c < Shape::kPack; ++c) {
        out[c] = row < valid && column + c < dim ? in[c] : T(0.0F);
      }
    }
  }
}

}  // namespace longca::reference
