#pragma once

#include <cstdint>

// Synchronization inside a CTA and a cluster (mbarriers, named barriers, proxy fences),
// programmatic dependent launch, and register reallocation between warpgroups.
namespace longca::slice::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// A warp's place in a pipeline of kStages shared-memory stages. `phase` is the parity that a
/// consumer waits for on the stage's full barrier. A producer waits for phase ^ 1 on the empty one:
/// its first wait for each stage returns at once.
template <int kStages>
struct PipelineState {
  int index = 0;
  std::uint32_t phase = 0;

  __device__ __forceinline__ void advance() {
    if (++index == kStages) {
      index = 0;
      phase ^= 1;
    }
  }
};

/// Whether this thread acts for its warp, all of whose lanes call this. The compiler does not know
/// that a thread chosen by `threadIdx` is alone: where operands of TMA lie in registers, it then
/// makes a loop over lanes for each instruction.
__device__ __forceinline__ bool elect_one() {
  std::uint32_t elected = 0;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, elected;\n"
      "}\n"
      : "=r"(elected));
  return elected != 0;
}

__device__ __forceinline__ void mbarrier_init(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals));
}

/// Makes mbarrier_init visible to TMA and to other CTAs of the cluster.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Release at CTA scope: what this thread read and wrote before precedes what a waiter does next.
__device__ __forceinline__ void mbarrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// Whether every thread arrives, in place of one for its warp or warpgroup (preset racecheck):
/// compute-sanitizer's racecheck does not follow an order that reaches the one thread through
/// __syncwarp or a named barrier.
#ifdef LONGCA_RACECHECK
constexpr bool kEveryThreadArrives = true;
#else
constexpr bool kEveryThreadArrives = false;
#endif
/// Arrivals that a barrier counts per warp (mbarrier_arrive_warp).
constexpr int kWarpArrivals = kEveryThreadArrives ? 32 : 1;
/// Arrivals that it counts per warpgroup where one thread arrives for all, behind a named barrier.
constexpr int kGroupArrivals = kEveryThreadArrives ? 128 : 1;

/// The warp's arrival. The caller orders the other lanes' accesses before, by __syncwarp or wgmma's
/// wait. The barrier counts kWarpArrivals for it.
__device__ __forceinline__ void mbarrier_arrive_warp(std::uint64_t* barrier, int lane) {
  if (kEveryThreadArrives || lane == 0) mbarrier_arrive(barrier);
}

/// Arrives and adds `bytes` to those that the phase still expects from TMA. Bytes may land before:
/// the phase stays open, as this arrival is pending.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(std::uint64_t* barrier,
                                                          std::uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/// Blocks until the phase with this parity is complete (acquire, CTA scope). On a fresh barrier a
/// wait for parity 1 returns at once. Nobody may be two phases ahead of a waiter.
__device__ __forceinline__ void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
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

__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// The shared::cluster address of `pointer`'s counterpart in CTA `rank`.
__device__ __forceinline__ std::uint32_t cluster_address(const void* pointer, int rank) {
  std::uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(shared_address(pointer)), "r"(rank));
  return address;
}

/// Arrives on the counterpart of `barrier` in CTA `rank`. Without .release.cluster, as CUTLASS's
/// ClusterBarrier: with it the compiler drains all of the thread's memory operations first. So it
/// publishes no writes to that CTA, and serves to mark a stage empty that the thread has only read.
__device__ __forceinline__ void cluster_mbarrier_arrive(std::uint64_t* barrier, int rank) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address(barrier, rank))
               : "memory");
}

/// Stores `value` to the counterpart of `to` in CTA `rank`; its four bytes count on the counterpart
/// of `barrier` there.
__device__ __forceinline__ void cluster_store_async(int* to, int value, std::uint64_t* barrier,
                                                    int rank) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                   cluster_address(to, rank)),
               "r"(value), "r"(cluster_address(barrier, rank))
               : "memory");
}

/// Stores `value` to the counterpart of `to` in CTA `rank`, to be read behind fence_cluster and a
/// cluster barrier.
template <typename T>
__device__ __forceinline__ void cluster_store(T* to, const T& value, int rank) {
  static_assert(sizeof(T) % 4 == 0);
  const auto* words = reinterpret_cast<const std::uint32_t*>(&value);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T)) / 4; ++i) {
    asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(cluster_address(to, rank) + 4 * i),
                 "r"(words[i])
                 : "memory");
  }
}

/// Arrives relaxed, which publishes no writes: with .release, the default, every thread would wait
/// until its writes to device memory are complete.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
/// Makes this thread's writes visible to the cluster behind the cluster_arrive that follows.
__device__ __forceinline__ void fence_cluster() {
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
}
/// Waits until all threads of the cluster have arrived.
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

/// `barrier` is an enumerator of the kernel's enum of named barriers. `threads`, a multiple of 32,
/// counts all that sync or arrive.
template <typename Barrier>
__device__ __forceinline__ void named_barrier_sync(Barrier barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(static_cast<int>(barrier)), "r"(threads) : "memory");
}

/// Whether `flag` is true in any thread that joins the barrier.
template <typename Barrier>
__device__ __forceinline__ bool named_barrier_or(Barrier barrier, int threads, bool flag) {
  std::uint32_t any;
  asm volatile(
      "{\n"
      ".reg .pred mine, one;\n"
      "setp.ne.u32 mine, %3, 0;\n"
      "bar.red.or.pred one, %1, %2, mine;\n"
      "selp.u32 %0, 1, 0, one;\n"
      "}"
      : "=r"(any)
      : "r"(static_cast<int>(barrier)), "r"(threads), "r"(static_cast<std::uint32_t>(flag))
      : "memory");
  return any != 0;
}

/// Makes this thread's stores to shared memory visible to TMA and wgmma (the async proxy).
/// Called by each thread that stored, before the barrier behind which these are issued, or by the
/// threads that issue them, behind that barrier.
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// Orders this thread's earlier generic accesses to device memory before its later TMA operations
/// there, and TMA operations whose completion it has waited for before its later generic accesses.
__device__ __forceinline__ void fence_proxy_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

/// PDL: blocks until the prerequisite grids have completed and flushed.
__device__ __forceinline__ void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
/// PDL: lets the dependent grid start on free SMs once every CTA has called this or exited.
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/// Set the registers per thread of the calling warpgroup, all of whose warps call it: a multiple of
/// 8. The CTA keeps what it was launched with in all, so `alloc` blocks until others have freed
/// enough.
template <int kRegisters>
__device__ __forceinline__ void warpgroup_reg_alloc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void warpgroup_reg_dealloc() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace longca::slice::ptx
