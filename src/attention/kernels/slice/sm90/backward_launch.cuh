#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/common/sink.cuh"
#include "attention/kernels/common/workspace_parts.h"
#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/sm90/backward.cuh"
#include "attention/kernels/slice/sm90/launch.h"
#include "core/cuda/error.h"
#include "core/rounding.h"

// How a backward pass is launched; one source file for each of several head dimensions includes it.
namespace longca::slice::sm90 {

/// The dimensions of the instance that computes `dims`.
inline DimPair instance_dims(const BackwardParams& params, DType dtype, const DimPair& dims) {
  if (has_96(dtype, dims) && params.softcap.cap == 0) return {96, 96};
  const int padded = instance_dim(dims);
  return padded > 0 ? DimPair{padded, padded} : dims;
}

/// Semaphores of a query tile: GradientShape::kDqParts.
inline int dq_parts(const DimPair& dims) {
  return instance_dim(dims) > 0 ? GradientShape<HeadDims<128>>::kDqParts
                                : GradientShape<HeadDims<256>>::kDqParts;
}

/// Byte offsets of the parts of BackwardParams::rows: what preprocess_kernel computes or clears.
/// dq_bytes is the size of BackwardParams::workspace, which is all dq_accum.
struct Workspace : WorkspaceParts {
  std::int64_t terms = 0, dkv_accum = 0, dq_semaphores = 0, dkv_semaphores = 0, visits = 0,
               counters = 0;
  std::int64_t dq_bytes = 0;

  Workspace(const BackwardParams& params, DType dtype, const DimPair& dims) {
    const auto [dim, value_dim] = instance_dims(params, dtype, dims);
    const std::int64_t group_tokens = kBackwardRows / params.lists.pack;
    const std::int64_t tiles =
        ceil_div(params.tokens_q, group_tokens) * (params.heads_q / params.lists.pack);
    terms = take(tiles * static_cast<std::int64_t>(sizeof(RowTerms)));
    const std::int64_t split = std::int64_t{params.heads_k} * params.lists.split_tiles;
    dkv_accum = take(split * backward_tile_keys({dim, value_dim}) * (dim + value_dim) * 4);
    dq_semaphores = take(tiles * dq_parts(dims) * 4);
    dkv_semaphores = take(params.ordered ? split * kDkvSemaphores * 4 : 0);
    visits = take(ceil_div(tiles, kRegionTiles) * 4);
    counters = take(8);
    dq_bytes = tiles * kBackwardRows * dim * 4;
  }
};

template <typename Dims>
BackwardKernelArgs backward_args(const BackwardParams& params, DType dtype, const DimPair& dims) {
  const int pack = params.lists.pack;
  const int tile_tokens = kBackwardRows / pack;
  const Workspace offsets(params, dtype, dims);
  auto* rows = static_cast<char*>(params.rows);
  BackwardKernelArgs args{};
  args.params = params;
  args.dim = dims.head_dim;
  args.value_dim = dims.value_dim;
  args.pack_shift = std::countr_zero(static_cast<unsigned>(pack));
  args.q_tiles = ceil_div(params.tokens_q, tile_tokens);
  args.head_blocks = params.heads_q / params.heads_k / pack;
  args.query_tiles = args.q_tiles * args.head_blocks * params.heads_k;
  args.section_heads = params.lists.section_heads;
  args.work_items = params.lists.items_per_order * params.heads_k;
  args.terms = reinterpret_cast<RowTerms*>(rows + offsets.terms);
  args.dq_accum = static_cast<float*>(params.workspace);
  args.dkv_accum = reinterpret_cast<float*>(rows + offsets.dkv_accum);
  // Where all dK and dV are added to given float32, split key tiles need no accumulators.
  args.dkv_accum_tiles = params.dkv_mode == StoreMode::add_float32 ? 0 : params.lists.split_tiles;
  args.dkv_accum_bytes = args.dkv_accum_tiles == 0 ? 0 : offsets.dq_semaphores - offsets.dkv_accum;
  args.dq_semaphores = reinterpret_cast<std::int32_t*>(rows + offsets.dq_semaphores);
  args.dkv_semaphores = reinterpret_cast<std::int32_t*>(rows + offsets.dkv_semaphores);
  args.dkv_semaphore_count = static_cast<int>((offsets.visits - offsets.dkv_semaphores) / 4);
  args.visits = reinterpret_cast<std::int32_t*>(rows + offsets.visits);
  args.work_counter = reinterpret_cast<std::int32_t*>(rows + offsets.counters);
  args.write_counter = args.work_counter + 1;
  // Without backward_kernel, postprocess_kernel would not wait for preprocess_kernel, which clears
  // the counters.
  if (args.work_items == 0) args.params.lists.counts_visits = false;
  if (params.tokens_q > 0) {
    args.q = tensor_map("Q", params.q, params.tokens_q, params.heads_q, args.dim, pack, tile_tokens,
                        dtype);
    args.dout = tensor_map("dO", params.dout, params.tokens_q, params.heads_q, args.value_dim, pack,
                           tile_tokens, dtype);
  }
  if (params.tokens_k > 0) {
    constexpr int kKeys = GradientShape<Dims>::kKeys;
    args.k = tensor_map("K", params.k, params.tokens_k, params.heads_k, args.dim, 1, kKeys, dtype);
    args.v =
        tensor_map("V", params.v, params.tokens_k, params.heads_k, args.value_dim, 1, kKeys, dtype);
  }
  return args;
}

/// Launches with programmatic stream serialization (PDL): the kernel may start while the one before
/// it in the stream still runs, and calls griddepcontrol_wait before it needs the results of that
/// one. Every CTA must call it, on every path, even if it needs nothing: then a kernel completes
/// only after the one right before it has, and whatever follows in the stream, also between
/// BackwardPart::rows and ::rest, comes after all kernels before.
template <typename Kernel>
void launch_early(Kernel kernel, int ctas, int threads, int shared_bytes,
                  const BackwardKernelArgs& args, cudaStream_t stream) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned>(ctas);
  config.blockDim = static_cast<unsigned>(threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  LONGCA_CUDA(cudaLaunchKernelEx(&config, kernel, args));
}

template <typename Shape>
void launch_main(const BackwardKernelArgs& args, cudaStream_t stream) {
  constexpr int kBytes = sizeof(typename Shape::Shared);
  static_assert(kBytes <= 227 * 1024);
  LONGCA_CUDA(cudaFuncSetAttribute(backward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  launch_early(backward_kernel<Shape>, std::min(args.work_items, sm_count()), Shape::kThreads,
               kBytes, args, stream);
}

/// launch_main of 128 dimensions for lists that tell halves; throws if this build has no such
/// kernel.
void launch_halves(const BackwardKernelArgs& args, DType dtype, cudaStream_t stream);

template <typename T, typename Dims>
void launch_preprocess(const BackwardKernelArgs& args, DType dtype, cudaStream_t stream) {
  if (args.query_tiles > 0) {
    launch_early(preprocess_kernel<T, GradientShape<Dims>>, args.query_tiles, kPrepostThreads, 0,
                 args, stream);
  } else {  // no rows: clears dkv_accum and the counters
    const Workspace offsets(args.params, dtype, {args.dim, args.value_dim});
    const auto bytes = static_cast<std::size_t>(offsets.end - offsets.dkv_accum);
    LONGCA_CUDA(cudaMemsetAsync(args.dkv_accum, 0, bytes, stream));
  }
}

/// {lse_log2, delta} of a query head's row, for launch_sink_gradient.
struct TermsOfRow {
  const RowTerms* terms;
  int pack_shift;
  int q_tiles;

  __device__ float2 operator()(int head, int token) const {
    const int row = (token << pack_shift) + (head & ((1 << pack_shift) - 1));
    const RowTerms& tile = terms[(head >> pack_shift) * q_tiles + row / kBackwardRows];
    return {tile.lse_log2[row % kBackwardRows], tile.delta[row % kBackwardRows]};
  }
};

/// Launches the kernels for these dimensions; kSoftcap: with a softcap too.
template <typename T, typename Dims, bool kSoftcap = true>
void launch(const BackwardParams& params, DType dtype, const DimPair& dims, BackwardPart part,
            cudaStream_t stream) {
  check_pack(params.lists.pack, params.heads_q / params.heads_k);
  const BackwardKernelArgs args = backward_args<Dims>(params, dtype, dims);
  if (part != BackwardPart::rest) launch_preprocess<T, Dims>(args, dtype, stream);
  if (part == BackwardPart::rows) return;
  if (args.work_items > 0) {
    if (params.lists.tells_halves) {
      if (!takes_halves(dims) || params.softcap.cap != 0) {
        throw_no_instance("backward kernel, or none with a softcap, for lists that tell halves",
                          dtype, dims);
      }
      if constexpr (Dims::kDim == 96) {
        launch_main<BackwardShape<T, Dims, false, true>>(args, stream);
      } else {
        launch_halves(args, dtype, stream);
      }
    } else if (params.softcap.cap == 0) {
      launch_main<BackwardShape<T, Dims>>(args, stream);
    } else if constexpr (kSoftcap) {
      launch_main<BackwardShape<T, Dims, true>>(args, stream);
    } else {
      throw_no_instance("backward kernel with a softcap", dtype, dims);
    }
  }
  const int writes = args.query_tiles + args.dkv_accum_tiles * params.heads_k * 2;
  if (writes > 0) {
    const int resident = sm_count() * kPostprocessCtasPerSm;
    launch_early(postprocess_kernel<T, GradientShape<Dims>>, std::min(writes, resident),
                 kPrepostThreads, 0, args, stream);
  }
  if (params.dsink != nullptr) {
    launch_sink_gradient(TermsOfRow{args.terms, args.pack_shift, args.q_tiles}, params.sink,
                         params.dsink, params.heads_q, params.tokens_q,
                         params.dq_mode == StoreMode::add_float32, stream);
  }
}

}  // namespace longca::slice::sm90
