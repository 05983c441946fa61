#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "attention/slice/launch.h"
#include "attention/slice/sm90/forward.cuh"
#include "attention/slice/sm90/tensor_map.h"
#include "core/cuda/error.h"

namespace longca::slice {
namespace {

using namespace sm90;

/// K and V of as many KV heads as a fraction of L2 holds; the number divides heads_k.
int section_kv_heads(const ForwardParams& params, int head_dim) {
  constexpr std::int64_t kBytes = 24 << 20;
  const std::int64_t head_bytes = 4ll * std::max(params.tokens_k, 1) * head_dim;
  int heads = static_cast<int>(std::clamp<std::int64_t>(kBytes / head_bytes, 1, params.heads_k));
  while (params.heads_k % heads != 0) --heads;
  return heads;
}

int multiprocessors() {
  int device = 0;
  int count = 0;
  LONGCA_CUDA(cudaGetDevice(&device));
  LONGCA_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

void check(const ForwardParams& params) {
  const int pack = params.lists.pack;
  if (!(params.scale > 0)) {
    throw std::invalid_argument("slice: scale " + std::to_string(params.scale) + " is not above 0");
  }
  if (pack < 1 || pack > 8 || !std::has_single_bit(static_cast<unsigned>(pack)) ||
      params.heads_q / params.heads_k % pack != 0) {
    throw std::invalid_argument("slice: a pack of " + std::to_string(pack) +
                                " heads is not 1, 2, 4 or 8, or does not divide the " +
                                std::to_string(params.heads_q / params.heads_k) +
                                " query heads of a KV head");
  }
}

template <typename Shape>
void launch(const ForwardParams& params, DType dtype, cudaStream_t stream) {
  check(params);
  const int pack = params.lists.pack;
  ForwardArgs args{};
  args.params = params;
  args.pack_shift = std::countr_zero(static_cast<unsigned>(pack));
  const int heads_per_item = pack * Shape::kCluster;
  args.section_items =
      section_kv_heads(params, Shape::kDim) * (params.heads_q / params.heads_k) / heads_per_item;
  args.work_items = params.lists.tiles_per_list * (params.heads_q / heads_per_item);
  if (args.work_items == 0 || params.tokens_q == 0) return;
  constexpr int kDim = Shape::kDim;
  args.q = tensor_map("Q", params.q, params.tokens_q, params.heads_q, kDim, pack,
                      Shape::kTileM / pack, dtype);
  args.o = tensor_map("O", params.o, params.tokens_q, params.heads_q, kDim, pack, kGroupRows / pack,
                      dtype);
  if (params.tokens_k > 0) {  // else no list names a key
    args.k = tensor_map("K", params.k, params.tokens_k, params.heads_k, kDim, 1, kHalfKeys, dtype);
    args.v = tensor_map("V", params.v, params.tokens_k, params.heads_k, kDim, 1, kHalfKeys, dtype);
  }
  constexpr int kBytes = sizeof(typename Shape::Shared);
  static_assert(kBytes <= 227 * 1024);
  LONGCA_CUDA(cudaFuncSetAttribute(forward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {Shape::kCluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = Shape::kCluster * std::min(args.work_items, multiprocessors() / Shape::kCluster);
  config.blockDim = Shape::kThreads;
  config.dynamicSmemBytes = kBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  LONGCA_CUDA(cudaLaunchKernelEx(&config, forward_kernel<Shape>, args));
}

}  // namespace

template <typename Element, int kDim>
void launch_cluster(const ForwardParams& params, DType dtype, cudaStream_t stream) {
  // Two head blocks of a KV head with the same list share what they load.
#if SLICE_CLUSTER
  const int pairs = 2 * params.lists.pack;
  if (params.heads_q / params.heads_k % pairs == 0 &&
      (params.lists.list_heads == 1 || params.heads_q / params.lists.list_heads % pairs == 0)) {
    return launch<ForwardShape<Element, kDim, 2>>(params, dtype, stream);
  }
#endif
  launch<ForwardShape<Element, kDim, 1>>(params, dtype, stream);
}

void launch_forward(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  if (dtype == DType::bfloat16 && head_dim == 128) {
    return launch_cluster<__nv_bfloat16, 128>(params, dtype, stream);
  }
#ifdef LONGCA_ALL_INSTANTIATIONS
  if (dtype == DType::bfloat16 && head_dim == 64) {
    return launch_cluster<__nv_bfloat16, 64>(params, dtype, stream);
  }
  if (dtype == DType::float16 && head_dim == 128) {
    return launch_cluster<__half, 128>(params, dtype, stream);
  }
  if (dtype == DType::float16 && head_dim == 64) {
    return launch_cluster<__half, 64>(params, dtype, stream);
  }
#endif
  throw std::invalid_argument("slice: this build has no forward kernel for " +
                              std::string(to_string(dtype)) + " of head dimension " +
                              std::to_string(head_dim));
}

}  // namespace longca::slice
