#pragma once

#include "attention/kernels/slice/sm90/consumer.cuh"
#include "attention/kernels/slice/sm90/producer.cuh"

namespace longca::slice::sm90 {

/// CTAs stay, one per SM, and take items until there is none. The producer loads
/// Q of an item, then K and V of its key tiles in turn, as far ahead as the ring allows: into the
/// next item while the consumers finish this one.
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    forward_kernel(const __grid_constant__ ForwardArgs args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<typename Shape::Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      ptx::barrier_init(&shared.q_full[i], 1);
      ptx::barrier_init(&shared.q_empty[i], kRowGroups);
    }
    for (int i = 0; i < Shape::kSlots; ++i) {
      ptx::barrier_init(&shared.full[i], 1);
      ptx::barrier_init(&shared.empty[i], Shape::kConsumerWarps * Shape::kCluster);
    }
    ptx::barrier_init(&shared.item_full, 1);
    ptx::barrier_init(&shared.item_empty, 1);
    ptx::fence_barrier_init();
    ptx::prefetch_map(&args.q);
    ptx::prefetch_map(&args.k);
    ptx::prefetch_map(&args.v);
    ptx::prefetch_map(&args.o);
  }
  int rank = 0;
  if constexpr (Shape::kCluster > 1) {
    rank = ptx::cluster_rank();
    ptx::cluster_sync();
  } else {
    __syncthreads();
  }
  // By a shuffle, so that the compiler knows that it is the same in all lanes.
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 128), 0);
  if (warpgroup == 0) {
    ptx::decrease_registers<Shape::kProducerRegisters>();
    if (threadIdx.x < 32) Producer<Shape>{args, shared, rank}.run();
  } else {
    constexpr float kLog2E = 1.4426950408889634f;
    ptx::increase_registers<Shape::kConsumerRegisters>();
    Consumer<Shape> consumer{args, shared, warpgroup - 1, rank, args.params.scale * kLog2E};
    consumer.run();
  }
  if constexpr (Shape::kCluster > 1) ptx::cluster_sync();  // none leaves while reached into
#endif
}

}  // namespace longca::slice::sm90
