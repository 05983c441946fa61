#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "core/cuda/error.h"
#include "core/device.h"
#include "core/rounding.h"
#include "parallel/executor/cuda/step_math_kernels.h"
#include "parallel/executor/cuda/vectors.cuh"

namespace longca {
namespace {

constexpr int kMaxParts = static_cast<int>(StepMath::kMaxParts);
constexpr int kThreads = 256;
/// A thread takes kTokens neighbouring tokens of a head, whose lse values share a 32-byte sector,
/// if that leaves kWaves times the threads that the GPU holds at a time; else one.
constexpr std::uint32_t kTokens = 4;
constexpr std::int64_t kWaves = 4;
constexpr std::int64_t kThreadsPerSm = 2048;  ///< at a time, of compute capabilities 8.0 and 9.0
/// Vectors of a row that a lane has in flight; the row's weights are computed once for all of them.
constexpr int kPerLane = 4;

template <typename T>
struct Rows {
  T* data = nullptr;
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;
  float* lse = nullptr;
  std::int64_t lse_stride = 0;

  Rows() = default;
  Rows(const TensorView& o, const LseView& l)
      : data(static_cast<T*>(o.data)),
        token_stride(o.token_stride),
        head_stride(o.head_stride),
        lse(l.data),
        lse_stride(l.head_stride) {}
  __device__ T* row(std::int64_t token, std::int64_t head) const {
    return data + token * token_stride + head * head_stride;
  }
  __device__ float* lse_of(std::int64_t token, std::int64_t head) const {
    return lse + head * lse_stride + token;
  }
};

template <typename Part, typename Out>
struct Merge {
  std::array<Rows<Part>, kMaxParts> parts;
  int count = 0;
  Rows<float> accumulator;  ///< absent if without data
  Rows<Out> out;
  std::int64_t tokens = 0;
  std::uint32_t heads = 0;
  std::uint32_t group = kTokens;  ///< tokens per thread
  std::uint32_t slots = 0;        ///< heads × groups of tokens
  std::uint32_t vectors = 0;      ///< per row
  std::uint32_t lanes = 0;        ///< per row: a power of two, at most 32
};

/// The weights of the parts, and last of the accumulator, in a row.
struct Weights {
  float of[kMaxParts + 1];
  float lse;
};

template <typename Part, typename Out>
__device__ Weights weigh(const Merge<Part, Out>& merge, std::int64_t token, std::uint32_t head) {
  Weights weights;
  const bool accumulates = merge.accumulator.data != nullptr;
  float max = -INFINITY;
#pragma unroll
  for (int i = 0; i <= kMaxParts; ++i) {
    if (i < kMaxParts ? i >= merge.count : !accumulates) continue;
    weights.of[i] = i < kMaxParts ? *merge.parts[i % kMaxParts].lse_of(token, head)
                                  : *merge.accumulator.lse_of(token, head);
    max = fmaxf(max, weights.of[i]);
  }
  if (max == -INFINITY) max = 0;  // no key in any part: all weights and the sum become 0
  float sum = 0;
#pragma unroll
  for (int i = 0; i <= kMaxParts; ++i) {
    if (i < kMaxParts ? i >= merge.count : !accumulates) continue;
    weights.of[i] = expf(weights.of[i] - max);
    sum += weights.of[i];
  }
  const float scale = sum == 0 ? 0 : 1 / sum;
#pragma unroll
  for (float& weight : weights.of) weight *= scale;
  weights.lse = max + logf(sum);
  return weights;
}

/// Adds weight × the lane's vectors of a row, up to its end.
template <typename T, int kWidth>
__device__ void add_weighted(Vector<float, kWidth> (&sums)[kPerLane], float weight, const T* row,
                             std::uint32_t lane, std::uint32_t lanes, std::uint32_t vectors) {
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    const std::uint32_t v = lane + j * lanes;
    if (v >= vectors) continue;
    const auto input = load_wide<T, kWidth>(row + v * kWidth);
#pragma unroll
    for (int e = 0; e < kWidth; ++e) sums[j].values[e] += weight * input.values[e];
  }
}

template <typename Part, typename Out, int kWidth>
__global__ void __launch_bounds__(kThreads)
    merge_rows(const __grid_constant__ Merge<Part, Out> merge) {
  const std::uint32_t lanes = merge.lanes;
  const std::uint32_t lane = threadIdx.x % lanes;
  const std::uint32_t slot = blockIdx.x * (kThreads / lanes) + threadIdx.x / lanes;
  if (slot >= merge.slots) return;
  const std::uint32_t head = slot % merge.heads;
  const std::uint32_t of_row = lanes == 32 ? ~0U : (1U << lanes) - 1;
  const std::uint32_t row_mask = of_row << (threadIdx.x % 32 - lane);
  const std::int64_t first = std::int64_t{slot / merge.heads} * merge.group;
  for (std::int64_t token = first; token < first + merge.group && token < merge.tokens; ++token) {
    const Weights weights = weigh(merge, token, head);
    for (std::uint32_t begin = 0; begin < merge.vectors; begin += kPerLane * lanes) {
      const std::uint32_t offset = begin * kWidth;
      const std::uint32_t left = merge.vectors - begin;
      Vector<float, kWidth> sums[kPerLane] = {};
#pragma unroll
      for (int i = 0; i < kMaxParts; ++i) {
        if (i >= merge.count) continue;
        add_weighted<Part, kWidth>(sums, weights.of[i], merge.parts[i].row(token, head) + offset,
                                   lane, lanes, left);
      }
      if (merge.accumulator.data != nullptr) {
        add_weighted<float, kWidth>(sums, weights.of[kMaxParts],
                                    merge.accumulator.row(token, head) + offset, lane, lanes, left);
      }
      Out* out = merge.out.row(token, head) + offset;
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) {
        const std::uint32_t v = lane + j * lanes;
        if (v < left) store_rounded<Out, kWidth>(out + v * kWidth, sums[j]);
      }
    }
    // All lanes have read the accumulator's lse, which the result's may alias.
    __syncwarp(row_mask);
    if (lane == 0) *merge.out.lse_of(token, head) = weights.lse;
  }
}

/// Whether rows can be loaded four elements at a time.
bool four_wide(const TensorView& o) {
  const std::uint64_t bits = static_cast<std::uint64_t>(o.token_stride) |
                             static_cast<std::uint64_t>(o.head_stride) |
                             static_cast<std::uint64_t>(o.dim);
  return bits % 4 == 0 && reinterpret_cast<std::uintptr_t>(o.data) % (4 * size_of(o.dtype)) == 0;
}

template <typename Part, typename Out>
void launch(std::span<const Partial> parts, const Partial& accumulator, const TensorView& o,
            const LseView& lse, cudaStream_t stream) {
  Merge<Part, Out> merge;
  bool wide = four_wide(o);
  for (const Partial& part : parts) {
    merge.parts[static_cast<std::size_t>(merge.count++)] = {part.o, part.lse};
    wide = wide && four_wide(part.o);
  }
  if (accumulator.o.data != nullptr) {
    merge.accumulator = {accumulator.o, accumulator.lse};
    wide = wide && four_wide(accumulator.o);
  }
  merge.out = {o, lse};
  merge.tokens = o.tokens;
  merge.heads = static_cast<std::uint32_t>(o.heads);
  merge.vectors = static_cast<std::uint32_t>(wide ? o.dim / 4 : o.dim);
  merge.lanes = std::clamp(std::bit_ceil(merge.vectors) / std::uint32_t{kPerLane}, 1U, 32U);
  const std::int64_t held = Device::get(DeviceKind::cuda).properties().sms * kThreadsPerSm;
  const bool many = o.heads * o.tokens * merge.lanes / kTokens >= kWaves * held;
  merge.group = many ? kTokens : 1;
  const std::int64_t slots = o.heads * ceil_div(o.tokens, merge.group);
  merge.slots = static_cast<std::uint32_t>(slots);
  const std::uint32_t per_block = kThreads / merge.lanes;
  const std::uint32_t blocks = ceil_div(merge.slots, per_block);
  if (wide) {
    merge_rows<Part, Out, 4><<<blocks, kThreads, 0, stream>>>(merge);
  } else {
    merge_rows<Part, Out, 1><<<blocks, kThreads, 0, stream>>>(merge);
  }
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace

void merge_partials(std::span<const Partial> parts, const Partial& accumulator, const TensorView& o,
                    const LseView& lse, cudaStream_t stream) {
  if (o.tokens * o.heads * o.dim == 0) return;
  with_type(parts.front().o.dtype, [&](auto* part) {
    using Part = std::remove_pointer_t<decltype(part)>;
    if (o.dtype == DType::float32) return launch<Part, float>(parts, accumulator, o, lse, stream);
    launch<Part, Part>(parts, accumulator, o, lse, stream);
  });
}

}  // namespace longca
