#include <algorithm>
#include <bit>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "attention/kernels/slice/backward_launch.h"
#include "attention/kernels/slice/sm90/backward.cuh"
#include "attention/kernels/slice/sm90/tensor_map.h"
#include "core/cuda/error.h"

namespace longca::slice {
namespace {

using namespace sm90;

/// The workspaces: parts of them at multiples of 256 bytes. BackwardParams::rows holds what
/// row_terms_kernel leaves to the others, BackwardParams::workspace the sums of dQ.
struct Workspace {
  std::int64_t terms = 0, keys = 0, turns = 0, visits = 0, counters = 0, end = 0;
  std::int64_t dq_bytes = 0;

  Workspace(const BackwardParams& params, int dim) {
    const std::int64_t group_tokens = kBackwardRows / params.lists.pack;
    const std::int64_t tiles =
        (params.tokens_q + group_tokens - 1) / group_tokens * (params.heads_q / params.lists.pack);
    terms = take(tiles * static_cast<std::int64_t>(sizeof(RowTerms)));
    keys = take(static_cast<std::int64_t>(params.heads_k) * params.lists.shared_tiles * 2 *
                kTileKeys * dim * 4);
    turns = take(tiles * 4);
    visits = take((tiles + kRegionTiles - 1) / kRegionTiles * 4);
    counters = take(8);
    dq_bytes = tiles * kBackwardRows * dim * 4;
  }

 private:
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t begin = end;
    end += (bytes + 255) / 256 * 256;
    return begin;
  }
};

int sms() {
  int device = 0;
  int count = 0;
  LONGCA_CUDA(cudaGetDevice(&device));
  LONGCA_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

void check(const BackwardParams& params) {
  const int pack = params.lists.pack;
  if (pack < 1 || pack > 8 || !std::has_single_bit(static_cast<unsigned>(pack)) ||
      params.heads_q / params.heads_k % pack != 0) {
    throw std::invalid_argument("slice: a pack of " + std::to_string(pack) +
                                " heads is not 1, 2, 4 or 8, or does not divide the " +
                                std::to_string(params.heads_q / params.heads_k) +
                                " query heads of a KV head");
  }
}

BackwardArgs backward_args(const BackwardParams& params, DType dtype, int dim) {
  const int pack = params.lists.pack;
  const int tile_tokens = kBackwardRows / pack;
  const Workspace offsets(params, dim);
  auto* rows = static_cast<char*>(params.rows);
  BackwardArgs args{};
  args.params = params;
  args.pack_shift = std::countr_zero(static_cast<unsigned>(pack));
  args.q_tiles = (params.tokens_q + tile_tokens - 1) / tile_tokens;
  args.head_blocks = params.heads_q / params.heads_k / pack;
  args.query_tiles = args.q_tiles * args.head_blocks * params.heads_k;
  args.section_heads = params.lists.section_heads;
  args.work_items = params.lists.items_per_order * params.heads_k;
  args.terms = reinterpret_cast<RowTerms*>(rows + offsets.terms);
  args.dq_sums = static_cast<float*>(params.workspace);
  args.key_sums = reinterpret_cast<float*>(rows + offsets.keys);
  // Where all are added to, parts of key tiles need no sums of their own.
  args.shared_sums = params.keys_sink == Sink::add_float32 ? 0 : params.lists.shared_tiles;
  args.key_sum_bytes = args.shared_sums == 0 ? 0 : offsets.turns - offsets.keys;
  args.turns = reinterpret_cast<std::int32_t*>(rows + offsets.turns);
  args.visits = reinterpret_cast<std::int32_t*>(rows + offsets.visits);
  args.work_counter = reinterpret_cast<std::int32_t*>(rows + offsets.counters);
  args.write_counter = args.work_counter + 1;
  // Without a main kernel there would be nobody to wait for but the one that clears the counters.
  if (args.work_items == 0) args.params.lists.counts_visits = false;
  if (params.tokens_q > 0) {
    args.q =
        tensor_map("Q", params.q, params.tokens_q, params.heads_q, dim, pack, tile_tokens, dtype);
    args.dout = tensor_map("dO", params.dout, params.tokens_q, params.heads_q, dim, pack,
                           tile_tokens, dtype);
  }
  if (params.tokens_k > 0) {
    args.k = tensor_map("K", params.k, params.tokens_k, params.heads_k, dim, 1, kTileKeys, dtype);
    args.v = tensor_map("V", params.v, params.tokens_k, params.heads_k, dim, 1, kTileKeys, dtype);
  }
  return args;
}

/// Starts while the kernel before it in the stream may still run, and calls
/// wait_for_kernels_before. That waits for the one kernel right before to be over, and for all that
/// it wrote. Between the rows of a call and its rest there may be others (of other calls, copies):
/// each of them was over only after the one before it was, for a kernel launched as usual begins so
/// and one of these waits before it ends, in every CTA and on every path. Whoever lets one
/// of these kernels end without waiting breaks the calls behind it.
template <typename Kernel>
void launch_early(Kernel kernel, int ctas, int threads, int shared_bytes,
                  const BackwardArgs& args, cudaStream_t stream) {
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
void launch_main(const BackwardArgs& args, cudaStream_t stream) {
  constexpr int kBytes = sizeof(typename Shape::Shared);
  static_assert(kBytes <= 227 * 1024);
  LONGCA_CUDA(cudaFuncSetAttribute(backward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  launch_early(backward_kernel<Shape>, std::min(args.work_items, sms()),
               Shape::kThreads, kBytes, args, stream);
}

template <typename T, int kDim>
void launch_rows(const BackwardArgs& args, cudaStream_t stream) {
  if (args.query_tiles > 0) {
    launch_early(row_terms_kernel<T, kDim>, args.query_tiles, 256, 0, args, stream);
  } else {
    const Workspace offsets(args.params, kDim);
    const auto bytes = static_cast<std::size_t>(offsets.end - offsets.keys);
    LONGCA_CUDA(cudaMemsetAsync(args.key_sums, 0, bytes, stream));
  }
}

template <typename T, int kDim>
void launch(const BackwardParams& params, DType dtype, BackwardPart part, cudaStream_t stream) {
  check(params);
  const BackwardArgs args = backward_args(params, dtype, kDim);
  if (part != BackwardPart::rest) launch_rows<T, kDim>(args, stream);
  if (part == BackwardPart::rows) return;
  if (args.work_items > 0) launch_main<BackwardShape<T, kDim>>(args, stream);
  const int writes = args.query_tiles + args.shared_sums * params.heads_k * 2;
  if (writes > 0) {
    const int resident = sms() * kWritersPerSm;
    launch_early(write_sums_kernel<T, kDim>, std::min(writes, resident), 256, 0, args, stream);
  }
}

}  // namespace

std::int64_t backward_workspace_bytes(const BackwardParams& params, int head_dim) {
  return Workspace(params, head_dim).dq_bytes;
}

std::int64_t backward_rows_bytes(const BackwardParams& params, int head_dim) {
  return Workspace(params, head_dim).end;
}

void launch_backward(const BackwardParams& params, DType dtype, int head_dim, BackwardPart part,
                     cudaStream_t stream) {
  if (dtype == DType::bfloat16 && head_dim == 128) {
    return launch<__nv_bfloat16, 128>(params, dtype, part, stream);
  }
#ifdef LONGCA_ALL_INSTANTIATIONS
  if (dtype == DType::bfloat16 && head_dim == 64) {
    return launch<__nv_bfloat16, 64>(params, dtype, part, stream);
  }
  if (dtype == DType::float16 && head_dim == 128) {
    return launch<__half, 128>(params, dtype, part, stream);
  }
  if (dtype == DType::float16 && head_dim == 64) {
    return launch<__half, 64>(params, dtype, part, stream);
  }
#endif
  throw std::invalid_argument("slice: this build has no backward kernel for " +
                              std::string(to_string(dtype)) + " of head dimension " +
                              std::to_string(head_dim));
}

}  // namespace longca::slice
