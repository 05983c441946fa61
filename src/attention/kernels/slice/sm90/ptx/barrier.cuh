#pragma once

#include <cstdint>

// Barriers of a CTA: mbarriers in shared memory, named barriers, fences and registers.
namespace longca::slice::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_init(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals));
}

/// Makes barrier_init visible to the copy engine and to other CTAs of the cluster.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// Arrives, and holds the phase open until `bytes` more have been copied.
__device__ __forceinline__ void barrier_arrive_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/// Waits until the phase of this parity is complete: the phase before the first has parity 1 and
/// is.
__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni finished;\n"
      "bra.uni again;\n"
      "finished:\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// CTAs of a cluster reach each other's shared memory under addresses of the cluster.

__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Where `pointer`'s place in shared memory is in the CTA of that rank.
__device__ __forceinline__ std::uint32_t cluster_address(const void* pointer, int rank) {
  std::uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(shared_address(pointer)), "r"(rank));
  return address;
}

/// Arrives in the CTA of that rank. Orders nothing but what this thread read of shared
/// memory: with .release.cluster the compiler would wait for all of its memory.
__device__ __forceinline__ void cluster_arrive(std::uint64_t* barrier, int rank) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address(barrier, rank))
               : "memory");
}

/// Stores a word in the CTA of that rank; its four bytes count on `barrier` there.
__device__ __forceinline__ void cluster_store(int* to, int value, std::uint64_t* barrier,
                                              int rank) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                   cluster_address(to, rank)),
               "r"(value), "r"(cluster_address(barrier, rank))
               : "memory");
}

/// Waits for all threads of the cluster.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/// Waits for `threads` threads at the named barrier.
__device__ __forceinline__ void named_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Counts as one of them, and goes on.
__device__ __forceinline__ void named_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Orders this thread's stores to shared memory before reads by the copy engine or wgmma.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Orders what the copy engine did, of which this thread has waited for the end, before what other
/// threads do with device memory after a release of this one.
__device__ __forceinline__ void fence_async_proxy_everywhere() {
  asm volatile("fence.proxy.async;" ::: "memory");
}

/// Until the kernels before this one in the stream are over, of which it was not to be kept waiting
/// (launch_early).
__device__ __forceinline__ void wait_for_kernels_before() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
/// The next kernel may take what room there is, and wait.
__device__ __forceinline__ void let_next_kernel_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/// Registers per thread of a whole warpgroup, from here on.
template <int kRegisters>
__device__ __forceinline__ void increase_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void decrease_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace longca::slice::ptx
