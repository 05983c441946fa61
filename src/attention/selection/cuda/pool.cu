#include "attention/selection/cuda/launch.h"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca {
namespace {

constexpr int kThreads = 256;

/// `Vector` elements per load.
template <typename T, int Vector>
struct alignas(sizeof(T) * Vector) Pack {
  T values[Vector];
};

/// One thread per (block, list, `Vector` dimensions). Adjacent threads take adjacent dimensions,
/// then lists, so that loads of a token's row coalesce.
template <typename T, int Vector>
__global__ void __launch_bounds__(kThreads) pool(PoolArgs a) {
  const int vectors = a.pitch / Vector;
  std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= std::int64_t{vectors} * a.lists * a.blocks) return;
  const int c = static_cast<int>(i % vectors) * Vector;
  i /= vectors;
  const int list = static_cast<int>(i % a.lists);
  const int block = static_cast<int>(i / a.lists);
  const int group = static_cast<int>(a.x.heads) / a.lists;
  const int begin = a.bounds[block];
  const int end = a.bounds[block + 1];
  float sum[Vector] = {};
  if (c < a.x.dim) {  // Vector divides dim
    for (int g = 0; g < group; ++g) {
      const T* row = static_cast<const T*>(a.x.data) + begin * a.x.token_stride +
                     (list * group + g) * a.x.head_stride + c;
#pragma unroll 8
      for (int token = begin; token < end; ++token, row += a.x.token_stride) {
        const auto pack = *reinterpret_cast<const Pack<T, Vector>*>(row);
#pragma unroll
        for (int v = 0; v < Vector; ++v) sum[v] += static_cast<float>(pack.values[v]);
      }
    }
  }
  const float share = 1.0F / (static_cast<float>(end - begin) * static_cast<float>(group));
  float* out = a.out + (std::int64_t{list} * a.blocks + block) * a.pitch + c;
#pragma unroll
  for (int v = 0; v < Vector; ++v) out[v] = sum[v] * share;
}

template <typename T, int Vector>
void launch(const PoolArgs& a, cudaStream_t stream) {
  const std::int64_t threads = std::int64_t{a.pitch / Vector} * a.lists * a.blocks;
  if (threads == 0) return;
  pool<T, Vector><<<static_cast<unsigned>(ceil_div(threads, kThreads)), kThreads, 0, stream>>>(a);
  LONGCA_CUDA(cudaGetLastError());
}

template <typename T, int Vector>
bool takes_vectors(const ConstTensorView& x) {
  return reinterpret_cast<std::uintptr_t>(x.data) % (sizeof(T) * Vector) == 0 &&
         x.dim % Vector == 0 && x.head_stride % Vector == 0 && x.token_stride % Vector == 0;
}

template <typename T>
void launch_dtype(const PoolArgs& a, cudaStream_t stream) {
  constexpr int kVector = 16 / sizeof(T);
  takes_vectors<T, kVector>(a.x) ? launch<T, kVector>(a, stream) : launch<T, 1>(a, stream);
}

}  // namespace

void launch_pool(const PoolArgs& args, cudaStream_t stream) {
  args.x.dtype == DType::float32 ? launch_dtype<float>(args, stream)
                                 : launch_dtype<BFloat16>(args, stream);
}

}  // namespace longca
