#pragma once

#include <cuda.h>

#include <cstdint>

#include "attention/kernels/slice/sm90/ptx/barrier.cuh"

// Bulk copies between device and shared memory by the copy engine.
namespace longca::slice::ptx {

__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// The box at (x, y, z), first dimension first, into shared memory; its bytes count on `barrier`.
/// What lies outside of the tensor arrives as zeros, and counts.
__device__ __forceinline__ void load_box(void* to, const CUtensorMap* map, std::uint64_t* barrier,
                                         int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5}], [%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/// The same into this place of every CTA of the cluster whose bit is set in `ranks`, where
/// its bytes count on that CTA's barrier.
__device__ __forceinline__ void load_box(void* to, const CUtensorMap* map, std::uint64_t* barrier,
                                         int x, int y, int z, std::uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
      "cluster "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(ranks)
      : "memory");
}

/// `bytes`, a multiple of 16 as both addresses are.
__device__ __forceinline__ void load_bytes(void* to, const void* from, std::uint32_t bytes,
                                           std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/// Writes a box from shared memory; what lies outside of the tensor is left out.
__device__ __forceinline__ void store_box(const CUtensorMap* map, const void* from, int x, int y,
                                          int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(shared_address(from)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until the shared memory that this thread's stores read may be written again.
__device__ __forceinline__ void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

}  // namespace longca::slice::ptx
