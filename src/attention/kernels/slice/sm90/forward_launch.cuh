#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>

#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/slice/sm90/forward.cuh"
#include "attention/kernels/slice/sm90/launch.h"
#include "core/cuda/error.h"

namespace longca::slice::sm90 {

template <typename Shape>
void launch(const ForwardParams& params, DType dtype, const DimPair& dims, cudaStream_t stream) {
  const int pack = params.lists.pack;
  const int group_size = params.heads_q / params.heads_k;
  ForwardKernelArgs args{};
  args.params = params;
  args.value_dim = dims.value_dim;
  args.pack_shift = std::countr_zero(static_cast<unsigned>(pack));
  const bool row_pairs = Shape::kCluster > 1 && params.lists.row_pairs;
  const int block_heads = row_pairs ? pack : pack * Shape::kCluster;
  args.list_work_tiles = params.lists.tiles_per_list / (row_pairs ? Shape::kCluster : 1);
  args.section_blocks = params.section_heads * group_size / block_heads;
  args.work_tiles = args.list_work_tiles * (params.heads_q / block_heads);
  if (args.work_tiles == 0 || params.tokens_q == 0) return;
  const auto map = [&](const char* name, const TensorArg& tensor, int tokens, int heads, int dim,
                       int box_heads, int box_tokens) {
    return tensor_map(name, tensor, tokens, heads, dim, box_heads, box_tokens, dtype);
  };
  const auto [dim, value_dim] = dims;
  args.q = map("Q", params.q, params.tokens_q, params.heads_q, dim, pack, Shape::kTileM / pack);
  if (!Shape::kAccumulate) {
    args.o =
        map("O", params.o, params.tokens_q, params.heads_q, value_dim, pack, kGroupRows / pack);
  }
  if (Shape::kEarlier) {
    args.earlier = map("the earlier O", params.earlier.o, params.tokens_q, params.heads_q,
                       value_dim, pack, kGroupRows / pack);
  }
  if (params.tokens_k > 0) {  // else no list has a key
    args.k = map("K", params.k, params.tokens_k, params.heads_k, dim, 1, kSubTileKeys);
    args.v = map("V", params.v, params.tokens_k, params.heads_k, value_dim, 1, kSubTileKeys);
  }
  if (params.lists.joints != nullptr) {
    if (!Shape::kJoins) throw_no_instance("forward kernel that reads joints", dtype, dims);
    args.k_joints = map("K", params.k, params.tokens_k, params.heads_k, dim, 1, kJointKeys);
    args.v_joints = map("V", params.v, params.tokens_k, params.heads_k, value_dim, 1, kJointKeys);
  }
  constexpr int kBytes = Shape::kStreams * sizeof(typename Shape::Shared);
  static_assert(kBytes <= 227 * 1024);
  LONGCA_CUDA(cudaFuncSetAttribute(forward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {Shape::kCluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = Shape::kCluster * std::min(args.work_tiles, sm_count() / Shape::kCluster);
  config.blockDim = Shape::kThreads;
  config.dynamicSmemBytes = kBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  LONGCA_CUDA(cudaLaunchKernelEx(&config, forward_kernel<Shape>, args));
}

/// Launches the instance that computes these head dimensions, of at most 128; false if this build
/// has none.
template <bool kAccumulate, int kCluster, bool kCapped = false, bool kEarlier = false>
bool dispatch(const ForwardParams& params, DType dtype, const DimPair& dims, cudaStream_t stream) {
  const auto launch_instance = [&]<typename Element, int kDim>() {
    if constexpr (kDim == 64 && kCluster > 1) {
      throw_no_instance("forward kernel for pairs of CTAs", dtype, dims);
    } else if constexpr (kDim == 64 && kEarlier) {
      throw_no_instance("forward kernel that merges an earlier result", dtype, dims);
    } else {
      using Shape = ForwardShape<Element, HeadDims<kDim>, kAccumulate, kCluster, kCapped, kEarlier>;
      launch<Shape>(params, dtype, dims, stream);
    }
  };
  return mma::instantiate<mma::kSliceInstances>(dtype, instance_dim(dims), launch_instance);
}

/// Launches the instance of wider heads for this call; kSoftcap: with a softcap too.
template <typename Element, typename Dims, bool kSoftcap>
void launch_wide(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                 cudaStream_t stream) {
  const auto launch_instance = [&]<bool kAccumulate, int kCluster, bool kCapped>() {
    using Shape = ForwardShape<Element, Dims, kAccumulate, kCluster, kCapped>;
    launch<Shape>(params, dtype, dims, stream);
  };
  if (params.softcap.cap == 0) {
    params.accumulate ? launch_instance.template operator()<true, 1, false>()
    : pairs           ? launch_instance.template operator()<false, 2, false>()
                      : launch_instance.template operator()<false, 1, false>();
  } else if constexpr (kSoftcap) {
    params.accumulate ? launch_instance.template operator()<true, 1, true>()
                      : launch_instance.template operator()<false, 1, true>();
  } else {
    throw_no_instance("forward kernel with a softcap", dtype, dims);
  }
}

}  // namespace longca::slice::sm90
