#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_prepost.cuh"
#include "attention/kernels/slice/sm90/backward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/memory.cuh"
#include "attention/kernels/slice/sm90/ptx/tma.cuh"

namespace longca::slice::sm90 {

/// One thread per dQ buffer, which adds it to the accumulators in device memory by TMA: at once, or
/// in the order of the lists. The consumers go on meanwhile.
///
/// A TMA operation of one CTA (async proxy) is ordered after that of another by three edges of the
/// PTX memory model: the other thread waits for its bulk group, whose completion makes the writes
/// visible to it and implies a fence from the async to the generic proxy; red_add_release to the
/// semaphore, or to `visits`, synchronizes with the load_acquire that reads this or a later
/// addition; fence_proxy_async_global orders that load before the next TMA operation of this
/// thread.
template <typename Shape>
struct BackwardDqAccumulator {
  const BackwardKernelArgs& args;
  typename Shape::Shared& shared;
  int buffer;
  int region = -1;  ///< of `visits`
  int visits = 0;   ///< not yet counted in device memory

  /// Waits until this buffer may be added to its accumulator; true if it is to be stored there
  /// instead, as the first one.
  __device__ __forceinline__ bool comes_first(std::int32_t* semaphore, int prior_adds) const {
    if (args.params.ordered) {
      if (prior_adds == 0) return true;
      while (ptx::load_acquire(semaphore) != prior_adds) {
      }
    } else {
      std::int32_t state = ptx::load_acquire(semaphore);
      if (state == kDqEmpty && atomicCAS(semaphore, kDqEmpty, kDqStoring) == kDqEmpty) return true;
      while (state != kDqStored) state = ptx::load_acquire(semaphore);
    }
    ptx::fence_proxy_async_global();
    return false;
  }

  /// Counts a visit for postprocess_kernel. Those of a region are published when the next region
  /// begins: all but this visit's addition are complete by then, so that the wait costs nothing.
  __device__ __forceinline__ void count_visit(int index) {
    const int now = index / kRegionTiles;
    if (now != region && region >= 0) {
      ptx::bulk_wait_group<1>();
      publish();
    }
    region = now;
    ++visits;
  }
  __device__ __forceinline__ void publish() {
    ptx::red_add_release(args.visits + region, visits);
    visits = 0;
  }

  __device__ __forceinline__ void run() {
    const bool counts = args.params.lists.counts_visits;
    constexpr std::uint32_t kBytes = kBackwardRows * Shape::kDim * sizeof(float);
    for (std::uint32_t phase = 0;; phase ^= 1) {
      ptx::mbarrier_wait(&shared.dq_full[buffer], phase);
      const int index = shared.dq_tile[buffer].index;
      const int prior_adds = shared.dq_tile[buffer].prior_adds;
      if (index < 0) break;
      std::int32_t* semaphore = args.dq_semaphores + index;
      const bool first = comes_first(semaphore, prior_adds);
      float* accum = dq_accum<Shape::kDim>(args, index);
      first ? ptx::bulk_store(accum, shared.dq[buffer], kBytes)
            : ptx::bulk_reduce_add(accum, shared.dq[buffer], kBytes);
      ptx::bulk_commit_group();
      ptx::bulk_wait_group_read();
      ptx::mbarrier_arrive(&shared.dq_empty[buffer]);
      if (counts) count_visit(index);
      if (!args.params.ordered && !first) continue;
      ptx::bulk_wait_group<0>();
      // Ordered: one addition more. Else from kDqStoring to kDqStored.
      ptx::red_add_release(semaphore, 1);
    }
    if (region < 0) return;
    ptx::bulk_wait_group<0>();
    publish();
  }
};

}  // namespace longca::slice::sm90
