#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_args.h"
#include "attention/kernels/slice/sm90/backward_shape.cuh"
#include "attention/kernels/slice/sm90/backward_sums.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/tile_products.cuh"
#include "attention/kernels/slice/sm90/ptx/tma.cuh"

namespace longca::slice::sm90 {

/// One thread per buffer of dQ, which hands it to the copy engine; ordered, when its turn has come.
/// The consumers go on meanwhile.
template <typename Shape>
struct BackwardAdder {
  const BackwardArgs& args;
  typename Shape::Shared& shared;
  int buffer;
  int region = -1;  ///< of the visits that are not counted in device memory yet
  int visits = 0;

  /// Waits until this buffer may be added to its sums, or is the first that comes there.
  __device__ __forceinline__ bool comes_first(std::int32_t* turn, int rank) const {
    // Additions that come before are in L2 when they are counted.
    if (args.params.ordered) {
      while (ptx::load_relaxed(turn) != rank) {
      }
      return rank == 0;
    }
    std::int32_t state = ptx::load_relaxed(turn);
    if (state == kUntouched) state = atomicCAS(turn, kUntouched, kFirst);
    if (state == kUntouched) return true;
    while (state != kStored) state = ptx::load_relaxed(turn);
    return false;
  }

  /// Counts visits where write_sums_kernel looks: those of a region when the next one is begun, for
  /// what was done there is in device memory by then.
  __device__ __forceinline__ void count_visit(int index) {
    const int now = index / kRegionTiles;
    if (now != region && region >= 0) {
      ptx::wait_stores_before_done();
      publish();
    }
    region = now;
    ++visits;
  }
  __device__ __forceinline__ void publish() {
    ptx::fence_async_proxy_everywhere();
    ptx::add_release(args.visits + region, visits);
    visits = 0;
  }

  __device__ __forceinline__ void run() {
    const bool counts = args.params.lists.counts_visits;
    constexpr std::uint32_t kBytes = kBackwardRows * Shape::kDim * sizeof(float);
    for (std::uint32_t parity = 0;; parity ^= 1) {
      ptx::barrier_wait(&shared.dq_full[buffer], parity);
      const int index = shared.dq_tile[buffer].index;
      const int rank = shared.dq_tile[buffer].rank;
      if (index < 0) break;
      std::int32_t* turn = args.turns + index;
      const bool first = comes_first(turn, rank);
      float* sums = dq_sums<Shape::kDim>(args, index);
      first ? ptx::store_bytes(sums, shared.dq[buffer], kBytes)
            : ptx::add_bytes(sums, shared.dq[buffer], kBytes);
      ptx::commit_stores();
      ptx::wait_stores_read();
      ptx::barrier_arrive(&shared.dq_empty[buffer]);
      if (counts) count_visit(index);
      if (!args.params.ordered && !first) continue;
      ptx::wait_stores_done();
      ptx::fence_async_proxy();
      // Unordered: from kFirst to kStored.
      ptx::add_release(turn, 1);
    }
    if (region < 0) return;
    ptx::wait_stores_done();
    publish();
  }
};

}  // namespace longca::slice::sm90
