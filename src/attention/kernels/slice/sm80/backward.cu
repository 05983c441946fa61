#include "attention/kernels/common/mma/backward_pass.cuh"
#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/common/sink.cuh"
#include "attention/kernels/common/workspace_parts.h"
#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/sm80/backward.cuh"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca::slice {
namespace {

/// Keys per CTA where shared memory is large enough (A100, H100), and elsewhere.
constexpr int kMaxTileN = 128;
constexpr int kMinTileN = 64;

/// The shape that takes most shared memory.
template <int kTileN>
using Largest = sm80::BackwardShape<__nv_bfloat16, 128, kTileN>;

/// Byte offsets of the parts of BackwardParams::workspace.
struct Workspace : WorkspaceParts {
  std::int64_t row_terms = 0, dq_accum = 0, dkv_accum = 0, dq_semaphores = 0, counter = 0;

  Workspace(const BackwardParams& params, int dim) {
    const std::int64_t tiles =
        std::int64_t{params.heads_q} * ceil_div(params.tokens_q, kBackwardRows);
    row_terms = take(tiles * kBackwardRows * 2 * 4);
    dq_accum = take(tiles * kBackwardRows * dim * 4);
    dkv_accum =
        take(std::int64_t{params.heads_k} * params.lists.split_tiles * 2 * kTileKeys * dim * 4);
    dq_semaphores = take(params.ordered ? tiles * 4 : 0);
    counter = take(4);
  }
};

/// Launches the kernels over key tiles. `cleared`: bytes from dkv_accum on that must be zero.
template <typename Shape>
void launch_tiles(const sm80::BackwardKernelArgs& args, std::int64_t cleared, cudaStream_t stream) {
  // dkv_accum, dq_semaphores and work_counter are contiguous.
  LONGCA_CUDA(cudaMemsetAsync(args.dkv_accum, 0, static_cast<std::size_t>(cleared), stream));
  const DeviceTransposedLists& lists = args.params.lists;
  const int ctas = lists.items_per_order * args.params.heads_k * Shape::kParts;
  constexpr int kBytes = sizeof(typename Shape::Tiles);
  LONGCA_CUDA(cudaFuncSetAttribute(sm80::backward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  sm80::backward_kernel<Shape>
      <<<static_cast<unsigned>(ctas), Shape::kThreads, kBytes, stream>>>(args);
  LONGCA_CUDA(cudaGetLastError());
  if (lists.split_tiles == 0) return;
  const dim3 grid(static_cast<unsigned>(lists.split_tiles * Shape::kParts),
                  static_cast<unsigned>(args.params.heads_k), 2);
  sm80::split_keys_kernel<Shape><<<grid, Shape::kThreads, 0, stream>>>(args);
  LONGCA_CUDA(cudaGetLastError());
}

/// mma::GradientArgs::row_terms of a query head's row, for launch_sink_gradient.
struct RowTermsOf {
  const float* row_terms;
  int padded_rows;

  __device__ float2 operator()(int head, int token) const {
    return reinterpret_cast<const float2*>(row_terms)[std::int64_t{head} * padded_rows + token];
  }
};

template <typename Shape>
void launch(const BackwardParams& params, cudaStream_t stream) {
  const Workspace offsets(params, Shape::kDim);
  auto* workspace = static_cast<char*>(params.workspace);
  const auto at = [&](std::int64_t offset) { return reinterpret_cast<float*>(workspace + offset); };
  mma::GradientArgs gradients{params};
  gradients.row_terms = at(offsets.row_terms);
  gradients.dq_sum = at(offsets.dq_accum);
  gradients.head_parts = 1;
  gradients.accumulate = params.dq_mode == StoreMode::add_float32;
  sm80::BackwardKernelArgs args{};
  args.params = params;
  args.q_tiles = ceil_div(params.tokens_q, kBackwardRows);
  args.group_size = params.heads_q / params.heads_k;
  args.row_terms = gradients.row_terms;
  args.dq_accum = gradients.dq_sum;
  args.dkv_accum = at(offsets.dkv_accum);
  args.dq_semaphores = reinterpret_cast<std::int32_t*>(workspace + offsets.dq_semaphores);
  args.work_counter = reinterpret_cast<std::int32_t*>(workspace + offsets.counter);
  mma::backward_pass<Shape>(params, gradients, stream, [&] {
    launch_tiles<Shape>(args, offsets.end - offsets.dkv_accum, stream);
  });
  if (params.dsink != nullptr) {
    launch_sink_gradient(RowTermsOf{args.row_terms, args.q_tiles * kBackwardRows}, params.sink,
                         params.dsink, params.heads_q, params.tokens_q, gradients.accumulate,
                         stream);
  }
}

}  // namespace

int sm80_backward_shared_bytes() {
  return sizeof(Largest<kMinTileN>::Tiles);
}

std::int64_t sm80_workspace_bytes(const BackwardParams& params, int head_dim) {
  return Workspace(params, head_dim).end;
}

void launch_sm80_backward(const BackwardParams& params, DType dtype, int head_dim, int shared_bytes,
                          cudaStream_t stream) {
  const bool large = shared_bytes >= static_cast<int>(sizeof(Largest<kMaxTileN>::Tiles));
  const bool is_built =
      mma::instantiate<mma::kSliceInstances>(dtype, head_dim, [&]<typename Element, int kDim>() {
        large ? launch<sm80::BackwardShape<Element, kDim, kMaxTileN>>(params, stream)
              : launch<sm80::BackwardShape<Element, kDim, kMinTileN>>(params, stream);
      });
  if (!is_built) throw_no_instance("backward kernel for mma.sync", dtype, {head_dim, head_dim});
}

}  // namespace longca::slice
