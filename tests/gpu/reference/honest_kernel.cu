#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "core/cuda/element_type.cuh"
#include "core/cuda/error.h"
#include "gpu/reference/honest_kernel.h"

namespace longca::test {

namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;
constexpr int kMaxDim = 128;
constexpr int kColumns = kMaxDim / kWarp;

template <typename T, typename View>
__device__ auto row(const View& x, std::int64_t token, std::int64_t head) {
  using Element = std::conditional_t<std::is_same_v<View, TensorView>, T, const T>;
  return static_cast<Element*>(x.data) + token * x.token_stride + head * x.head_stride;
}

template <typename T>
__device__ float rounded(float x) {
  return static_cast<float>(static_cast<T>(x));
}

/// a · b, eight elements at a time from the last to the first.
template <typename T>
__device__ float dot(const float* a, const T* b, int dim) {
  float sum = 0;
  for (int c = dim - 8; c >= 0; c -= 8) {
    alignas(16) T values[8];
    for (int i = 0; i < static_cast<int>(sizeof(values)) / 16; ++i) {
      reinterpret_cast<uint4*>(values)[i] = reinterpret_cast<const uint4*>(b + c)[i];
    }
    for (int i = 0; i < 8; ++i) sum += a[c + i] * static_cast<float>(values[i]);
  }
  return sum;
}

__device__ float sum_of_warp(float x) {
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0U, x, step);
  return x;
}
__device__ float largest_of_warp(float x) {
  for (int step = kWarp / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0U, x, step));
  return x;
}

/// sum[c] += Σ_j weight of lane j · x[first + j], for the partners below `end`.
template <typename T>
__device__ void add_rows(float weight, const ConstTensorView& x, std::int64_t head,
                         std::int64_t first, std::int64_t end, float (&sum)[kColumns]) {
  const auto lane = static_cast<int>(threadIdx.x);
  for (int j = 0; j < kWarp && first + j < end; ++j) {
    const float w = __shfl_sync(~0U, weight, j);
    const T* from = row<T>(x, first + j, head);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (lane + c * kWarp < x.dim) sum[c] += w * static_cast<float>(from[lane + c * kWarp]);
    }
  }
}

template <typename T>
__device__ void load(const T* from, float* to, std::int64_t dim) {
  for (int c = threadIdx.x; c < dim; c += kWarp) to[c] = static_cast<float>(from[c]);
  __syncwarp();
}

template <typename T>
__device__ void store(const float (&sum)[kColumns], float factor, T* to, std::int64_t dim) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int column = static_cast<int>(threadIdx.x) + c * kWarp;
    if (column < dim) to[column] = static_cast<T>(sum[c] * factor);
  }
}

/// The own token of this warp, and its head.
__device__ std::int64_t own_token() {
  return std::int64_t{blockIdx.x} * kWarps + threadIdx.y;
}

struct Span {
  std::int64_t begin, end;
};
__device__ Span list_of(const RowsView& rows, int head, int heads, std::int64_t token,
                        std::int64_t tokens) {
  const std::int64_t at = static_cast<std::int64_t>(head) * rows.heads / heads * tokens + token;
  return {rows.offsets[at], rows.offsets[at + 1]};
}

template <typename T>
__global__ void forward(ForwardArgs a, RowsView rows, float scale) {
  __shared__ float queries[kWarps][kMaxDim];
  const auto head = static_cast<int>(blockIdx.y);
  const std::int64_t token = own_token();
  if (token >= a.q.tokens) return;
  const std::int64_t head_k = head / (a.q.heads / a.k.heads);
  const auto dim = static_cast<int>(a.q.dim);
  float* q = queries[threadIdx.y];
  load(row<T>(a.q, token, head), q, dim);
  float sum[kColumns] = {};
  float largest = -INFINITY;
  float weight = 0;
  const Span list = list_of(rows, head, static_cast<int>(a.q.heads), token, a.q.tokens);
  for (std::int64_t r = list.begin; r < list.end; ++r) {
    const std::int64_t end = rows.ranges[2 * r + 1];
    for (std::int64_t first = rows.ranges[2 * r]; first < end; first += kWarp) {
      const std::int64_t key = first + threadIdx.x;
      float s = -INFINITY;
      if (key < end) s = scale * dot(q, row<T>(a.k, key, head_k), dim);
      const float next = fmaxf(largest, largest_of_warp(s));
      const float factor = expf(largest - next);
      const float p = expf(s - next);
      largest = next;
      weight = weight * factor + sum_of_warp(p);
      for (float& x : sum) x *= factor;
      add_rows<T>(rounded<T>(p), a.v, head_k, first, end, sum);
    }
  }
  const bool any = weight > 0;
  store(sum, any ? 1 / weight : 0, row<T>(a.o, token, head), dim);
  if (threadIdx.x == 0) {
    a.lse.data[head * a.lse.head_stride + token] = any ? largest + logf(weight) : -INFINITY;
  }
}

template <typename T>
__global__ void deltas(BackwardArgs a, float* delta) {
  const std::int64_t token = own_token();
  if (token >= a.q.tokens) return;
  const T* o = row<T>(a.o, token, blockIdx.y);
  const T* dout = row<T>(a.dout, token, blockIdx.y);
  float sum = 0;
  for (int c = threadIdx.x; c < a.q.dim; c += kWarp) {
    sum += static_cast<float>(o[c]) * static_cast<float>(dout[c]);
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x == 0) delta[blockIdx.y * a.q.tokens + token] = sum;
}

template <typename T>
__global__ void query_gradients(BackwardArgs a, RowsView rows, float scale, const float* delta) {
  __shared__ float queries[kWarps][kMaxDim];
  __shared__ float douts[kWarps][kMaxDim];
  const auto head = static_cast<int>(blockIdx.y);
  const std::int64_t token = own_token();
  if (token >= a.q.tokens) return;
  const std::int64_t head_k = head / (a.q.heads / a.k.heads);
  const auto dim = static_cast<int>(a.q.dim);
  float* q = queries[threadIdx.y];
  float* dout = douts[threadIdx.y];
  load(row<T>(a.q, token, head), q, dim);
  load(row<T>(a.dout, token, head), dout, dim);
  const float lse = a.lse.data[head * a.lse.head_stride + token];
  float sum[kColumns] = {};
  const Span list = list_of(rows, head, static_cast<int>(a.q.heads), token, a.q.tokens);
  for (std::int64_t r = list.begin; r < list.end; ++r) {
    const std::int64_t end = rows.ranges[2 * r + 1];
    for (std::int64_t first = rows.ranges[2 * r]; first < end; first += kWarp) {
      const std::int64_t key = first + threadIdx.x;
      float ds = 0;
      if (key < end) {
        const float p = expf(scale * dot(q, row<T>(a.k, key, head_k), dim) - lse);
        const float dp = dot(dout, row<T>(a.v, key, head_k), dim);
        ds = rounded<T>(p * (dp - delta[head * a.q.tokens + token]));
      }
      add_rows<T>(ds * scale, a.k, head_k, first, end, sum);
    }
  }
  store(sum, 1, row<T>(a.dq, token, head), dim);
}

template <typename T>
__global__ void key_gradients(BackwardArgs a, RowsView rows, float scale, const float* delta) {
  __shared__ float keys[kWarps][kMaxDim];
  __shared__ float values[kWarps][kMaxDim];
  const auto head_k = static_cast<int>(blockIdx.y);
  const std::int64_t token = own_token();
  if (token >= a.k.tokens) return;
  const auto group = static_cast<int>(a.q.heads / a.k.heads);
  const auto dim = static_cast<int>(a.q.dim);
  float* k = keys[threadIdx.y];
  float* v = values[threadIdx.y];
  load(row<T>(a.k, token, head_k), k, dim);
  load(row<T>(a.v, token, head_k), v, dim);
  float dk[kColumns] = {};
  float dv[kColumns] = {};
  for (int head = head_k * group; head < (head_k + 1) * group; ++head) {
    const Span list = list_of(rows, head, static_cast<int>(a.q.heads), token, a.k.tokens);
    for (std::int64_t r = list.begin; r < list.end; ++r) {
      const std::int64_t end = rows.ranges[2 * r + 1];
      for (std::int64_t first = rows.ranges[2 * r]; first < end; first += kWarp) {
        const std::int64_t query = first + threadIdx.x;
        float p = 0;
        float ds = 0;
        if (query < end) {
          const float lse = a.lse.data[head * a.lse.head_stride + query];
          p = expf(scale * dot(k, row<T>(a.q, query, head), dim) - lse);
          const float dp = dot(v, row<T>(a.dout, query, head), dim);
          ds = rounded<T>(p * (dp - delta[head * a.q.tokens + query]));
        }
        add_rows<T>(rounded<T>(p), a.dout, head, first, end, dv);
        add_rows<T>(ds * scale, a.q, head, first, end, dk);
      }
    }
  }
  store(dk, 1, row<T>(a.dk, token, head_k), dim);
  store(dv, 1, row<T>(a.dv, token, head_k), dim);
}

const dim3 kThreads(kWarp, kWarps);

dim3 grid(std::int64_t tokens, std::int64_t heads) {
  return {static_cast<unsigned>((tokens + kWarps - 1) / kWarps), static_cast<unsigned>(heads)};
}

template <typename T>
void backward(const BackwardArgs& a, const RowsView& keys_of_queries,
              const RowsView& queries_of_keys, float scale, float* delta, cudaStream_t stream) {
  deltas<T><<<grid(a.q.tokens, a.q.heads), kThreads, 0, stream>>>(a, delta);
  LONGCA_CUDA(cudaGetLastError());
  query_gradients<T>
      <<<grid(a.q.tokens, a.q.heads), kThreads, 0, stream>>>(a, keys_of_queries, scale, delta);
  LONGCA_CUDA(cudaGetLastError());
  key_gradients<T>
      <<<grid(a.k.tokens, a.k.heads), kThreads, 0, stream>>>(a, queries_of_keys, scale, delta);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace

void launch_forward(const ForwardArgs& args, RowsView rows, float scale, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const dim3 blocks = grid(args.q.tokens, args.q.heads);
  with_type(args.q.dtype,
            [&]<typename T>(T*) { forward<T><<<blocks, kThreads, 0, queue>>>(args, rows, scale); });
  LONGCA_CUDA(cudaGetLastError());
}

void launch_backward(const BackwardArgs& args, RowsView keys_of_queries, RowsView queries_of_keys,
                     float scale, float* delta, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  with_type(args.q.dtype, [&]<typename T>(T*) {
    backward<T>(args, keys_of_queries, queries_of_keys, scale, delta, queue);
  });
}

}  // namespace longca::test
