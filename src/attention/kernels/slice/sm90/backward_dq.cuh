#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_prepost.cuh"
#include "attention/kernels/slice/sm90/backward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/memory.cuh"
#include "attention/kernels/slice/sm90/ptx/tma.cuh"

namespace longca::slice::sm90 {

/// One thread per dQ buffer, which adds the buffer to the accumulator of its query tile in device
/// memory by TMA: at once, or in the order of the lists. The consumers go on meanwhile.
///
/// The hand-over of an accumulator from CTA to CTA, between TMA operations (async proxy), rests on
/// three edges of the PTX memory model:
/// 1. bulk_wait_group (not …_read) of the thread that issued the first operation: completion makes
///    its writes visible to that thread, and implies a fence from the async to the generic proxy.
/// 2. red_add_release of that thread to the semaphore synchronizes with the load_acquire, in the
///    other CTA, that reads this or a later addition.
/// 3. fence_proxy_async_global orders that load before the other thread's next TMA operation.
/// postprocess_kernel, which reads by generic loads, needs the first two, through `visits`, unless
/// it waits for this grid to complete.
template <typename Shape>
struct BackwardDqAccumulator {
  const BackwardKernelArgs& args;
  typename Shape::Shared& shared;
  int buffer;
  int region = -1;  ///< of the last visit
  int visits = 0;   ///< of that region, not yet counted in device memory

  /// Waits until this buffer may be added to its accumulator; true, at once, if it is to be stored
  /// there instead, as the first one. Cannot deadlock: waits only for an operation that another
  /// thread has claimed already or, if ordered, for items taken before this one.
  __device__ __forceinline__ bool comes_first(std::int32_t* semaphore, int prior_adds) const {
    const bool ordered = args.params.ordered != 0;
    if (ordered && prior_adds == 0) return true;
    const std::int32_t awaited = ordered ? prior_adds : kDqStored;
    std::int32_t state = ptx::load_acquire(semaphore);
    if (!ordered && state == kDqEmpty && atomicCAS(semaphore, kDqEmpty, kDqStoring) == kDqEmpty)
      return true;
    if (state != awaited) {
      // Each acquiring load invalidates the L1 cache: the polls are relaxed, and one load that
      // acquires follows, which reads what the last of them read. Edge 2 begins there.
      while (ptx::load_relaxed(semaphore) != awaited) {
      }
      ptx::load_acquire(semaphore);
    }
    ptx::fence_proxy_async_global();
    return false;
  }

  /// Counts a visit, whose bulk group has just been committed, for postprocess_kernel. The visits
  /// of a region are published when the next region begins, after waiting for all groups but the
  /// latest, which belongs to the next: they are complete by then, so that the wait costs nothing.
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
    constexpr std::uint32_t kBytes = kBackwardRows * Shape::kDim / Shape::kDqParts * sizeof(float);
    for (std::uint32_t phase = 0;; phase ^= 1) {
      ptx::mbarrier_wait(&shared.dq_full[buffer], phase);
      const int index = shared.dq_tile[buffer].index;
      const int prior_adds = shared.dq_tile[buffer].prior_adds;
      if (index < 0) break;
      std::int32_t* semaphore = args.dq_semaphores + index;
      float* accum = dq_accum<Shape::kDim>(args, index);
      if constexpr (Shape::kWide) {
        semaphore = args.dq_semaphores + std::int64_t{index} * Shape::kDqParts + buffer;
        accum += buffer * (kBackwardRows * Shape::kDqColumns);
      }
      const bool first = comes_first(semaphore, prior_adds);
      // Orders the consumers' stores to the buffer, acquired from dq_full, before its read by TMA
      // (async proxy). This thread fences for all that stored, so that they need not wait.
      ptx::fence_proxy_async_shared();
      first ? ptx::bulk_store(accum, shared.dq[buffer], kBytes)
            : ptx::bulk_reduce_add(accum, shared.dq[buffer], kBytes);
      ptx::bulk_commit_group();
      ptx::bulk_wait_group_read();
      ptx::mbarrier_arrive(&shared.dq_empty[buffer]);
      if (counts) count_visit(index);
      if (!args.params.ordered && !first) continue;
      ptx::bulk_wait_group<0>();
      // If ordered: one addition more. Else kDqStoring becomes kDqStored.
      ptx::red_add_release(semaphore, 1);
    }
    if (region < 0) return;
    ptx::bulk_wait_group<0>();
    publish();
  }
};

}  // namespace longca::slice::sm90
