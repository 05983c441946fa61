#pragma once

#include "attention/kernels/common/logarithms.h"
#include "attention/kernels/slice/sm90/forward_consumer.cuh"
#include "attention/kernels/slice/sm90/forward_producer.cuh"

namespace longca::slice::sm90 {

/// Persistent: one CTA per SM takes work tiles until there is none. A producer loads Q of a work
/// tile, then K and V of its key tiles, as far ahead as the stages allow: into the next work tile
/// while the consumers finish this one (docs/design/slice-forward.md).
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    forward_kernel(const __grid_constant__ ForwardKernelArgs args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto* streams = reinterpret_cast<typename Shape::Shared*>(shared_bytes);
  // A shuffle tells the compiler that the value is uniform in a warp. Which value is shuffled
  // decides how it allocates the registers of the loops: either way is 1 to 6 % slower in the
  // other's place.
  int warpgroup = 0;
  int stream = 0;
  bool produces = false;  // the first warps of warpgroup 0
  if constexpr (Shape::kStreams > 1) {
    const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
    warpgroup = warp / 4;
    stream = warpgroup == 0 ? warp % Shape::kStreams : (warpgroup - 1) / kRowGroups;
    produces = warp < Shape::kStreams;
  } else {
    warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 128), 0);
    produces = threadIdx.x < 32;
  }
  auto& shared = streams[stream];
  if (produces && threadIdx.x % 32 == 0) {
    for (int i = 0; i < Shape::kQueryStages; ++i) {
      ptx::mbarrier_init(&shared.q_full[i], 1);
      ptx::mbarrier_init(&shared.q_empty[i], kRowGroups * ptx::kGroupArrivals);
    }
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i],
                         Shape::kConsumerWarps * Shape::kCluster * ptx::kWarpArrivals);
    }
    if constexpr (Shape::kEarlier) {
      for (int i = 0; i < Shape::kQueryStages * kRowGroups; ++i) {
        ptx::mbarrier_init(&shared.earlier_full[0][0] + i, 1);
      }
    }
    ptx::mbarrier_init(&shared.work_full, 1);
    ptx::mbarrier_init(&shared.work_empty, 1);
    if constexpr (Shape::kUnchecked) {
      for (auto& repeat : shared.repeats.of_group) repeat.work.row_begin = -1;
      ptx::fence_cluster();
    }
    ptx::fence_barrier_init();
    ptx::prefetch_tensormap(&args.q);
    ptx::prefetch_tensormap(&args.k);
    ptx::prefetch_tensormap(&args.v);
    ptx::prefetch_tensormap(&args.o);
  }
  int rank = 0;
  if constexpr (Shape::kCluster > 1) {
    rank = ptx::cluster_rank();
    ptx::cluster_arrive();
  }
  const auto wait_for_barriers = [] {
    if constexpr (Shape::kCluster > 1) {
      ptx::cluster_wait();
    } else {
      __syncthreads();
    }
  };
  bool second_round = false;
  // Whether a second round follows, of work tiles to be computed again.
  const auto ends_round = [&] {
    if constexpr (Shape::kUnchecked) {
      ptx::cluster_sync();
      bool repeats = false;
      for (const auto& repeat : shared.repeats.of_group) repeats |= repeat.work.row_begin >= 0;
      second_round = !second_round && __any_sync(~0u, repeats);
    }
    return second_round;
  };
  if (warpgroup == 0) {
    const int cta = stream * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
    TileScheduler<Shape> scheduler{args, shared, rank, cta / Shape::kCluster};
    // Reads the list of the first work tile before it waits for the barriers. Not where results are
    // merged: there the compiler runs out of registers and serializes wgmma (C7511).
    if (!Shape::kAccumulate && produces) {
      while (!scheduler.ready()) scheduler.advance();
    }
    wait_for_barriers();
    ptx::warpgroup_reg_dealloc<Shape::kProducerRegisters>();
    ForwardProducer<Shape> producer{args, shared, rank};
    if (produces) producer.run(scheduler);
    if (ends_round()) {
      if constexpr (Shape::kUnchecked) {
        if (produces) producer.repeat(scheduler);
      }
      ends_round();
    }
  } else {
    wait_for_barriers();
    ptx::warpgroup_reg_alloc<Shape::kConsumerRegisters>();
    // Capped scores are in the log2 domain already.
    const float scale_log2 = Shape::kCapped ? 1 : args.params.scale * kLog2E;
    const int group = warpgroup - 1 - stream * kRowGroups;
    ForwardConsumer<Shape> consumer{args, shared, group, rank, scale_log2};
    do {
      consumer.run(second_round);
    } while (ends_round());
  }
#endif
}

}  // namespace longca::slice::sm90
