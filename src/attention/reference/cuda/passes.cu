#include <algorithm>

#include "attention/reference/cuda/passes.h"
#include "attention/reference/cuda/tile_pass.cuh"
#include "core/cuda/element_type.cuh"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca {
namespace {

using namespace reference;

template <ReferencePass kPass, typename Shape>
__global__ __launch_bounds__(Shape::kThreads,
                             Shape::kBlocks) void tile_pass(const __grid_constant__ PassArgs args) {
  extern __shared__ __align__(16) unsigned char memory[];
  TilePass<kPass, Shape>(args, *reinterpret_cast<SharedTiles<kPass, Shape>*>(memory)).run();
}

template <ReferencePass kPass, typename Shape>
void launch(const PassArgs& args, cudaStream_t stream) {
  constexpr auto kernel = tile_pass<kPass, Shape>;
  constexpr int bytes = sizeof(SharedTiles<kPass, Shape>);
  LONGCA_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const dim3 grid(static_cast<unsigned>(args.tiles), static_cast<unsigned>(args.head_count));
  if (grid.x == 0 || grid.y == 0) return;
  kernel<<<grid, Shape::kThreads, bytes, stream>>>(args);
  LONGCA_CUDA(cudaGetLastError());
}

template <typename Shape>
void launch_pass(ReferencePass pass, const PassArgs& args, cudaStream_t stream) {
  switch (pass) {
    case ReferencePass::forward:
      return launch<ReferencePass::forward, Shape>(args, stream);
    case ReferencePass::query_gradient:
      return launch<ReferencePass::query_gradient, Shape>(args, stream);
    case ReferencePass::value_gradient:
      return launch<ReferencePass::value_gradient, Shape>(args, stream);
    case ReferencePass::key_gradient:
      return launch<ReferencePass::key_gradient, Shape>(args, stream);
  }
}

/// Calls visit(Shape{}) with the shape for a dtype and head dimension.
template <typename Visit>
auto with_shape(DType dtype, std::int64_t dim, const Visit& visit) {
  if (dtype == DType::float32) {
    return dim <= 64 ? visit(TileShape<float, double, 64>{})
                     : visit(TileShape<float, double, 128>{});
  }
  const auto of_two_bytes = [&]<typename T>(T) {
    if (dim <= 64) return visit(TileShape<T, float, 64>{});
    if (dim <= 128) return visit(TileShape<T, float, 128>{});
    return visit(TileShape<T, float, 256>{});
  };
  return dtype == DType::float16 ? of_two_bytes(__half{}) : of_two_bytes(__nv_bfloat16{});
}

template <typename T>
__global__ void squared_rows(ConstTensorView x, float* squared) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const bool exists = row < x.tokens * x.heads;
  const std::int64_t token = row / x.heads;
  const std::int64_t head = row % x.heads;
  float sum = 0;
  for (std::int64_t c = threadIdx.x; exists && c < x.dim; c += 32) {
    const auto value = static_cast<float>(row_of<T>(x, token, head)[c]);
    sum += value * value;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
  if (exists && threadIdx.x == 0) squared[head * x.tokens + token] = sum;
}

/// One warp per row of o, of type O, and dout, of type T.
template <typename O, typename T>
__global__ void given_statistics(ConstTensorView o, ConstLseView lse, ConstTensorView dout,
                                 const int* heads, const int* query_index, RowStatistic* rows) {
  const std::int64_t token = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const int head = heads[blockIdx.y];
  const bool exists = token < o.tokens;
  double delta = 0;
  double o_squared = 0;
  double dout_squared = 0;
  for (std::int64_t c = threadIdx.x; exists && c < o.dim; c += 32) {
    const auto value = static_cast<double>(static_cast<float>(row_of<O>(o, token, head)[c]));
    const auto gradient = static_cast<double>(static_cast<float>(row_of<T>(dout, token, head)[c]));
    delta += value * gradient;
    o_squared += value * value;
    dout_squared += gradient * gradient;
  }
  for (int step = 16; step > 0; step /= 2) {
    delta += __shfl_xor_sync(~0U, delta, step);
    o_squared += __shfl_xor_sync(~0U, o_squared, step);
    dout_squared += __shfl_xor_sync(~0U, dout_squared, step);
  }
  if (!exists || threadIdx.x != 0) return;
  const float given = lse.data[head * lse.head_stride + token];
  rows[query_index[head] * o.tokens + token] = {
      static_cast<double>(given), delta, given, static_cast<float>(delta),
      delta_magnitude(delta, o_squared, dout_squared, o.dim)};
}

}  // namespace

int largest_reference_dim(DType dtype) {
  return dtype == DType::float32 ? 128 : 256;
}

int reference_shared_bytes(DType dtype, int head_dim) {
  return with_shape(dtype, head_dim, []<typename Shape>(Shape) {
    return static_cast<int>(sizeof(SharedTiles<ReferencePass::key_gradient, Shape>));
  });
}

void run_pass(ReferencePass pass, const PassArgs& args, cudaStream_t stream) {
  with_shape(args.q.dtype, args.q.dim,
             [&]<typename Shape>(Shape) { launch_pass<Shape>(pass, args, stream); });
}

void statistics_of(const ConstTensorView& o, const ConstLseView& lse, const ConstTensorView& dout,
                   const int* heads, int count, const int* query_index, RowStatistic* rows,
                   cudaStream_t stream) {
  constexpr int kRowsOfBlock = 8;
  const dim3 grid(static_cast<unsigned>(ceil_div(o.tokens, kRowsOfBlock)),
                  static_cast<unsigned>(count));
  if (grid.x == 0 || grid.y == 0) return;
  const dim3 threads(32, kRowsOfBlock);
  auto* kernel = given_statistics<float, float>;
  if (dout.dtype == DType::bfloat16) {
    kernel = o.dtype == DType::float32 ? given_statistics<float, __nv_bfloat16>
                                       : given_statistics<__nv_bfloat16, __nv_bfloat16>;
  } else if (dout.dtype == DType::float16) {
    kernel = o.dtype == DType::float32 ? given_statistics<float, __half>
                                       : given_statistics<__half, __half>;
  }
  kernel<<<grid, threads, 0, stream>>>(o, lse, dout, heads, query_index, rows);
  LONGCA_CUDA(cudaGetLastError());
}

void squared_norms(const ConstTensorView& x, float* squared, cudaStream_t stream) {
  constexpr int kRowsOfBlock = 8;
  const std::int64_t rows = x.tokens * x.heads;
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>(ceil_div(rows, kRowsOfBlock));
  const dim3 threads(32, kRowsOfBlock);
  with_type(x.dtype,
            [&]<typename T>(T*) { squared_rows<T><<<blocks, threads, 0, stream>>>(x, squared); });
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca
