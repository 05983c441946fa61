#pragma once

#include <cuda.h>

#include <cstdint>

#include "attention/kernels/slice/sm90/ptx/barrier.cuh"

// TMA: bulk copies and reductions between device and shared memory. Loads complete on an mbarrier,
// stores in bulk groups of the issuing thread.
namespace longca::slice::ptx {

__device__ __forceinline__ void prefetch_tensormap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// Loads the box at (x, y, z), innermost dimension first: here (element, head, token). Elements
/// outside of the tensor arrive as zeros, and their bytes count on `barrier` too.
__device__ __forceinline__ void tma_load(void* to, const CUtensorMap* map, std::uint64_t* barrier,
                                         int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5}], [%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/// Multicasts the box to the same shared-memory offset in every CTA of `cta_mask`; each copy counts
/// on the counterpart of `barrier` in its own CTA.
__device__ __forceinline__ void tma_load(void* to, const CUtensorMap* map, std::uint64_t* barrier,
                                         int x, int y, int z, std::uint16_t cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
      "cluster "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(cta_mask)
      : "memory");
}

/// Copies contiguous bytes. `bytes` and both addresses are multiples of 16, here and below.
__device__ __forceinline__ void bulk_load(void* to, const void* from, std::uint32_t bytes,
                                          std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/// Stores a box; elements outside of the tensor are left out.
__device__ __forceinline__ void tma_store(const CUtensorMap* map, const void* from, int x, int y,
                                          int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(shared_address(from)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

__device__ __forceinline__ void bulk_store(void* to, const void* from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}

/// Adds floats in shared memory to those in device memory. Each addition is atomic, relaxed at GPU
/// scope: additions of different operations come in any order.
__device__ __forceinline__ void bulk_reduce_add(float* to, const void* from, std::uint32_t bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
      "r"(shared_address(from)), "r"(bytes)
      : "memory");
}

__device__ __forceinline__ void bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void prefetch_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address) : "memory");
}
/// Waits until this thread's groups have read shared memory, which may be written again then. Says
/// nothing about device memory.
__device__ __forceinline__ void bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/// Waits until all but the last kPending of this thread's groups are complete: their writes to
/// device memory are visible to this thread.
template <int kPending>
__device__ __forceinline__ void bulk_wait_group() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace longca::slice::ptx
