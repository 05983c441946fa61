#pragma once

#include <type_traits>

#include "attention/kernels/slice/sm90/backward_consumer.cuh"
#include "attention/kernels/slice/sm90/backward_dq.cuh"
#include "attention/kernels/slice/sm90/backward_narrow_consumer.cuh"
#include "attention/kernels/slice/sm90/backward_producer.cuh"
#include "attention/kernels/slice/sm90/backward_wide_consumer.cuh"

namespace longca::slice::sm90 {

/// Persistent: a CTA takes work items, each a key tile and the query tiles that see it. dK and dV
/// stay in the registers of the consumer warpgroups, and dQ is added to float32 accumulators in
/// device memory (docs/design/slice-backward.md).
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    backward_kernel(const __grid_constant__ BackwardKernelArgs args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<typename Shape::Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::kKeyStages; ++i) {
      ptx::mbarrier_init(&shared.keys_full[i], 1);
      ptx::mbarrier_init(&shared.keys_empty[i], Shape::kConsumerWarps * ptx::kWarpArrivals);
    }
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&shared.q_full[i], 1);
      ptx::mbarrier_init(&shared.q_empty[i], Shape::kGradientWarps * ptx::kWarpArrivals);
    }
    for (int i = 0; i < Shape::kDoutStages; ++i) {
      ptx::mbarrier_init(&shared.dout_full[i], 1);
      ptx::mbarrier_init(&shared.dout_empty[i], Shape::kScoreWarps * ptx::kWarpArrivals);
    }
    ptx::mbarrier_init(&shared.pattern_empty, Shape::kConsumerWarps * ptx::kWarpArrivals);
    for (int i = 0; i < Shape::kDsStages; ++i) {
      ptx::mbarrier_init(&shared.ds_full[i], Shape::kScoreWarps * ptx::kWarpArrivals);
      ptx::mbarrier_init(&shared.ds_empty[i], Shape::kGradientWarps * ptx::kWarpArrivals);
    }
    for (int i = 0; i < Shape::kDqBuffers; ++i) {
      ptx::mbarrier_init(&shared.dq_full[i], Shape::kDqWarps * ptx::kWarpArrivals);
      ptx::mbarrier_init(&shared.dq_empty[i], 1);
    }
    ptx::fence_barrier_init();
    ptx::prefetch_tensormap(&args.q);
    ptx::prefetch_tensormap(&args.dout);
    ptx::prefetch_tensormap(&args.k);
    ptx::prefetch_tensormap(&args.v);
  }
  __syncthreads();
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 128), 0);
  // 24 + 2 · 240 = 3 · 168, what 384 threads are launched with. At 24 the producer spills between
  // work items; with 232 for the consumers the compiler would serialize their wgmma. If kNarrow
  // 32 + 2 · 176 + 128 = 4 · 128; with 120 for dK and dQ it would serialize these.
  if (warpgroup == 0) {
    ptx::warpgroup_reg_dealloc<(Shape::kNarrow ? 32 : 24)>();
    if (threadIdx.x < 32) {
      BackwardProducer<Shape>{args, shared}.run();
    } else if (threadIdx.x < 32 * (1 + Shape::kDqBuffers)) {
      const int buffer = static_cast<int>(threadIdx.x / 32) - 1;
      if (ptx::elect_one()) BackwardDqAccumulator<Shape>{args, shared, buffer}.run();
    }
  } else if constexpr (Shape::kNarrow) {
    const int warp = static_cast<int>(threadIdx.x / 32 % 4);
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (warpgroup < 3) {
      ptx::warpgroup_reg_alloc<176>();
      BackwardScoreConsumer<Shape>{{args, shared, warpgroup - 1, warp, lane}}.run();
    } else {
      ptx::warpgroup_reg_alloc<128>();
      BackwardGradientConsumer<Shape>{args, shared, warp, lane}.run();
    }
  } else {
    ptx::warpgroup_reg_alloc<240>();
    using Consumer =
        std::conditional_t<Shape::kWide, BackwardWideConsumer<Shape>, BackwardConsumer<Shape>>;
    Consumer consumer{{args, shared, warpgroup - 1, static_cast<int>(threadIdx.x / 32 % 4),
                       static_cast<int>(threadIdx.x % 32)}};
    consumer.run();
  }
#endif
}

}  // namespace longca::slice::sm90
