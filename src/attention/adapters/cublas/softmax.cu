// The row kernels of `naive`: one CTA per row of a head's score matrix.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <limits>

#include "attention/adapters/cublas/softmax.h"
#include "core/cuda/element_type.cuh"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca::naive {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 4;  ///< scores per thread and iteration
constexpr int kChunk = kThreads * kVector;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T, typename View>
__device__ T* row_of(const View& tensor, std::int64_t token, std::int64_t head) {
  return static_cast<T*>(tensor.data) + token * tensor.token_stride + head * tensor.head_stride;
}
template <typename View>
__device__ auto& lse_of(const View& lse, std::int64_t head, std::int64_t token) {
  return lse.data[head * lse.head_stride + token];
}

// ---- The allowed keys of a row as bits in shared memory.

__device__ std::uint32_t bits_of_range(std::int64_t begin, std::int64_t end) {
  if (begin < 0) begin = 0;
  if (end > 32) end = 32;
  if (begin >= end) return 0;
  const std::uint32_t low = end == 32 ? ~0U : (1U << end) - 1;
  return low & (~0U << begin);
}

__device__ std::uint32_t kept_bits(const DeviceRowMask::View& mask, const std::uint32_t* kept,
                                   std::uint32_t bits, std::int64_t first_key) {
  const auto is_kept = [&](std::int32_t block) {
    return (kept[block / 32] >> (block % 32) & 1) != 0;
  };
  if (bits == ~0U) {  // fast path: 32 keys of one block
    const std::int32_t block = mask.block_of_key[first_key];
    if (block == mask.block_of_key[first_key + 31]) return is_kept(block) ? bits : 0;
  }
  for (std::uint32_t left = bits; left != 0; left &= left - 1) {
    const int bit = __ffs(static_cast<int>(left)) - 1;
    if (!is_kept(mask.block_of_key[first_key + bit])) bits &= ~(1U << bit);
  }
  return bits;
}

__device__ void fill_allowed(const DeviceRowMask::View& mask, std::int64_t q, std::int64_t head,
                             std::int64_t heads, std::int64_t pitch, std::uint32_t* allowed) {
  const std::int32_t band = mask.band_of_row[q];
  const RowMask::MaskSlice* begin = mask.slices + mask.band_offsets[band];
  const RowMask::MaskSlice* end = mask.slices + mask.band_offsets[band + 1];
  const std::uint32_t* kept = nullptr;
  if (mask.kept != nullptr) {
    const std::int64_t list = head * mask.heads / heads * mask.q_blocks + mask.block_of_row[q];
    kept = mask.kept + list * mask.words;
  }
  for (std::int64_t word = threadIdx.x; word * 32 < pitch; word += kThreads) {
    std::uint32_t bits = 0;
    for (const RowMask::MaskSlice* slice = begin; slice < end; ++slice) {
      std::int64_t from = slice->k_begin;
      std::int64_t to = slice->k_end;
      if (slice->lower) from += q - slice->q_begin;
      if (slice->upper) to -= slice->q_end - 1 - q;
      bits |= bits_of_range(from - word * 32, to - word * 32);
    }
    allowed[word] = kept == nullptr ? bits : kept_bits(mask, kept, bits, word * 32);
  }
  __syncthreads();
}

/// The bits of keys [k, k + 4), k a multiple of 4.
__device__ std::uint32_t allowed_at(const std::uint32_t* allowed, std::int64_t k) {
  return allowed[k / 32] >> (k % 32) & 0xf;
}

// ---- Reductions over a CTA.

/// A row max and the sum of weights relative to it.
struct Partial {
  float maximum = -kInfinity;
  float weight = 0;
};

__device__ Partial merged(Partial a, Partial b) {
  const float maximum = fmaxf(a.maximum, b.maximum);
  if (maximum == -kInfinity) return {};
  return {maximum, a.weight * expf(a.maximum - maximum) + b.weight * expf(b.maximum - maximum)};
}

__device__ Partial block_merge(Partial own) {
  __shared__ Partial of_warp[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) {
    own = merged(own,
                 {__shfl_xor_sync(~0U, own.maximum, step), __shfl_xor_sync(~0U, own.weight, step)});
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  Partial all = of_warp[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) all = merged(all, of_warp[warp]);
  return all;
}

__device__ float block_sum(float own) {
  __shared__ float of_warp[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) own += __shfl_xor_sync(~0U, own, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  float all = 0;
  for (const float sum : of_warp) all += sum;
  return all;
}

// ---- Rows in place.

__device__ void store(float* row, std::int64_t k, float4 x) {
  *reinterpret_cast<float4*>(row + k) = x;
}
__device__ void store(__nv_bfloat16* row, std::int64_t k, float4 x) {
  __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(x.x, x.y), __floats2bfloat162_rn(x.z, x.w)};
  *reinterpret_cast<uint2*>(row + k) = *reinterpret_cast<const uint2*>(pairs);
}
__device__ void store(__half* row, std::int64_t k, float4 x) {
  __half2 pairs[2] = {__floats2half2_rn(x.x, x.y), __floats2half2_rn(x.z, x.w)};
  *reinterpret_cast<uint2*>(row + k) = *reinterpret_cast<const uint2*>(pairs);
}

/// Calls f(k) for every fourth key below `pitch` and, after a barrier, writes the returned values
/// to keys k … k + 3 of the same row as T. A chunk of T never reaches the next chunk of float32.
template <typename T, typename F>
__device__ void rewrite_row(float* row, std::int64_t pitch, F f) {
  for (std::int64_t base = 0; base < pitch; base += kChunk) {
    const std::int64_t k = base + threadIdx.x * kVector;
    float4 x{};
    if (k < pitch) x = f(k);
    __syncthreads();
    if (k < pitch) store(reinterpret_cast<T*>(row), k, x);
  }
}

__device__ float score_of(float product, const ScoreRule& rule) {
  const float score = product * rule.scale;
  return rule.softcap > 0 ? rule.softcap * tanhf(score / rule.softcap) : score;
}

/// Derivative of a score by scale · q·k.
__device__ float slope_of(float score, const ScoreRule& rule) {
  if (rule.softcap == 0) return 1;
  const float t = score / rule.softcap;
  return (1 - t) * (1 + t);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    softmax_rows(Scores scores, DeviceRowMask::View mask, ScoreRule rule, const float* sink,
                 LseView lse) {
  extern __shared__ std::uint32_t allowed[];
  const std::int64_t q = blockIdx.x;
  const std::int64_t head = blockIdx.y;
  float* row = scores.data + (head * scores.tokens_q + q) * scores.pitch;
  fill_allowed(mask, q, head, scores.heads, scores.pitch, allowed);

  Partial own;
  for (std::int64_t k = threadIdx.x * kVector; k < scores.pitch; k += kChunk) {
    const std::uint32_t bits = allowed_at(allowed, k);
    if (bits == 0) continue;
    const float4 s = *reinterpret_cast<const float4*>(row + k);
    const float x[kVector] = {score_of(s.x, rule), score_of(s.y, rule), score_of(s.z, rule),
                              score_of(s.w, rule)};
    Partial four;
    for (int i = 0; i < kVector; ++i) {
      if (bits >> i & 1) four.maximum = fmaxf(four.maximum, x[i]);
    }
    for (int i = 0; i < kVector; ++i) {
      if (bits >> i & 1) four.weight += expf(x[i] - four.maximum);
    }
    own = merged(own, four);
  }
  Partial all = block_merge(own);
  if (sink != nullptr) all = merged(all, {sink[head], 1});
  const bool sees_nothing = all.weight == 0;
  if (threadIdx.x == 0) {
    lse_of(lse, head, q) = sees_nothing ? -kInfinity : all.maximum + logf(all.weight);
  }
  const float factor = sees_nothing ? 0 : 1 / all.weight;
  rewrite_row<T>(row, scores.pitch, [&](std::int64_t k) {
    const std::uint32_t bits = allowed_at(allowed, k);
    if (bits == 0) return float4{};
    const float4 s = *reinterpret_cast<const float4*>(row + k);
    const auto weight = [&](int i, float x) {
      return (bits >> i & 1) != 0 ? expf(score_of(x, rule) - all.maximum) * factor : 0.0F;
    };
    return float4{weight(0, s.x), weight(1, s.y), weight(2, s.z), weight(3, s.w)};
  });
}

__device__ float element(const ConstTensorView& tensor, std::int64_t token, std::int64_t head,
                         std::int64_t i) {
  if (tensor.dtype == DType::bfloat16) {
    return __bfloat162float(row_of<const __nv_bfloat16>(tensor, token, head)[i]);
  }
  if (tensor.dtype == DType::float16) {
    return __half2float(row_of<const __half>(tensor, token, head)[i]);
  }
  return row_of<const float>(tensor, token, head)[i];
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    gradient_rows(Scores scores, Scores gradients, DeviceRowMask::View mask, ScoreRule rule,
                  ConstTensorView o, ConstTensorView dout, ConstLseView lse) {
  extern __shared__ std::uint32_t allowed[];
  const std::int64_t q = blockIdx.x;
  const std::int64_t head = blockIdx.y;
  float* row = scores.data + (head * scores.tokens_q + q) * scores.pitch;
  float* gradient_row = gradients.data + (head * scores.tokens_q + q) * scores.pitch;
  fill_allowed(mask, q, head, scores.heads, scores.pitch, allowed);
  float own = 0;
  for (std::int64_t i = threadIdx.x; i < o.dim; i += kThreads) {
    own += element(o, q, head, i) * element(dout, q, head, i);
  }
  const float delta = block_sum(own);
  const float shift = lse_of(lse, head, q);

  for (std::int64_t base = 0; base < scores.pitch; base += kChunk) {
    const std::int64_t k = base + threadIdx.x * kVector;
    float4 p{};
    float4 ds{};
    const std::uint32_t bits = k < scores.pitch ? allowed_at(allowed, k) : 0;
    if (bits != 0) {
      const float4 s = *reinterpret_cast<const float4*>(row + k);
      const float4 dp = *reinterpret_cast<const float4*>(gradient_row + k);
      const auto one = [&](int i, float x, float dx, float& weight, float& gradient) {
        if ((bits >> i & 1) == 0) return;
        const float score = score_of(x, rule);
        weight = expf(score - shift);
        gradient = weight * (dx - delta) * rule.scale * slope_of(score, rule);
      };
      one(0, s.x, dp.x, p.x, ds.x);
      one(1, s.y, dp.y, p.y, ds.y);
      one(2, s.z, dp.z, p.z, ds.z);
      one(3, s.w, dp.w, p.w, ds.w);
    }
    __syncthreads();  // all threads have read this chunk, as in rewrite_row
    if (k < scores.pitch) {
      store(reinterpret_cast<T*>(row), k, p);
      store(reinterpret_cast<T*>(gradient_row), k, ds);
    }
  }
}

__global__ void merge_rows(TensorView o, LseView lse, TensorView o_new, LseView lse_new) {
  const std::int64_t q = blockIdx.x;
  const std::int64_t head = blockIdx.y;
  const float before = lse_of(lse, head, q);
  const float added = lse_of(lse_new, head, q);
  __syncthreads();  // all threads have read before any writes
  if (added == -kInfinity) return;
  const float maximum = fmaxf(before, added);
  const float weight_before = expf(before - maximum);
  const float weight_added = expf(added - maximum);
  const float sum = weight_before + weight_added;
  for (std::int64_t i = threadIdx.x; i < o.dim; i += blockDim.x) {
    float& x = row_of<float>(o, q, head)[i];
    const float y = row_of<float>(o_new, q, head)[i];
    x = before == -kInfinity ? y : (weight_before * x + weight_added * y) / sum;
  }
  if (threadIdx.x == 0) lse_of(lse, head, q) = maximum + logf(sum);
}

template <typename T>
__global__ void round_rows(TensorView from, TensorView to) {
  const std::int64_t token = blockIdx.x;
  const std::int64_t head = blockIdx.y;
  for (std::int64_t i = threadIdx.x; i < from.dim; i += blockDim.x) {
    row_of<T>(to, token, head)[i] = T(row_of<const float>(from, token, head)[i]);
  }
}

dim3 grid_of(std::int64_t tokens, std::int64_t heads) {
  return {static_cast<unsigned>(tokens), static_cast<unsigned>(heads)};
}

/// Bytes of shared memory for the bits of a row; opts in to more than the default if needed.
template <typename Kernel>
std::size_t bits_for(const Kernel& kernel, std::int64_t pitch) {
  const std::int64_t bytes = ceil_div(pitch, 32) * 4;
  LONGCA_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(bytes)));
  return static_cast<std::size_t>(bytes);
}

}  // namespace

void softmax_in_place(const Scores& scores, DType dtype, const DeviceRowMask& mask,
                      const ScoreRule& rule, const float* sink, const LseView& lse,
                      cudaStream_t stream) {
  if (scores.tokens_q == 0) return;
  const auto launch = [&](auto kernel) {
    kernel<<<grid_of(scores.tokens_q, scores.heads), kThreads, bits_for(kernel, scores.pitch),
             stream>>>(scores, mask.view(), rule, sink, lse);
  };
  with_type(dtype, [&]<typename T>(T*) { launch(softmax_rows<T>); });
  LONGCA_CUDA(cudaGetLastError());
}

void gradients_in_place(const Scores& scores, const Scores& gradients, DType dtype,
                        const DeviceRowMask& mask, const ScoreRule& rule, const ConstTensorView& o,
                        const ConstTensorView& dout, const ConstLseView& lse, cudaStream_t stream) {
  if (scores.tokens_q == 0) return;
  const auto launch = [&](auto kernel) {
    kernel<<<grid_of(scores.tokens_q, scores.heads), kThreads, bits_for(kernel, scores.pitch),
             stream>>>(scores, gradients, mask.view(), rule, o, dout, lse);
  };
  with_type(dtype, [&]<typename T>(T*) { launch(gradient_rows<T>); });
  LONGCA_CUDA(cudaGetLastError());
}

void merge_results(const TensorView& o, const LseView& lse, const TensorView& o_new,
                   const LseView& lse_new, cudaStream_t stream) {
  if (o.tokens == 0) return;
  merge_rows<<<grid_of(o.tokens, o.heads), 128, 0, stream>>>(o, lse, o_new, lse_new);
  LONGCA_CUDA(cudaGetLastError());
}

void round_tensor(const TensorView& from, const TensorView& to, cudaStream_t stream) {
  if (from.tokens == 0) return;
  auto* kernel = to.dtype == DType::float16 ? round_rows<__half> : round_rows<__nv_bfloat16>;
  kernel<<<grid_of(from.tokens, from.heads), 128, 0, stream>>>(from, to);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca::naive
