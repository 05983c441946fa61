#pragma once

#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"

// Products with both operands in shared memory and few columns, as the backward pass takes them;
// and additions to device memory.
namespace longca::slice::ptx {

/// Whether the inner dimension of an operand lies along its rows in shared memory, or across.
enum class Inner { along, across };

#define LONGCA_D8(i)                                                                          \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define LONGCA_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define LONGCA_NAMES_32 \
  LONGCA_NAMES_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"

/// d = a · b (+ d): a of 64 × 16, b of 16 × 64.
template <typename Element, Inner kA, Inner kB, bool kAdd>
__device__ __forceinline__ void multiply_tile(float (&d)[32], std::uint64_t a, std::uint64_t b) {
#define LONGCA_MULTIPLY(type)                                                          \
  asm volatile(                                                                        \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" LONGCA_NAMES_32 \
      "}, %32, %33, add, 1, 1, %35, %36;\n}"                                           \
      : LONGCA_D8(0), LONGCA_D8(8), LONGCA_D8(16), LONGCA_D8(24)                       \
      : "l"(a), "l"(b), "n"(kAdd ? 1 : 0), "n"(kA == Inner::across ? 1 : 0),           \
        "n"(kB == Inner::across ? 1 : 0))
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    LONGCA_MULTIPLY("bf16");
  } else {
    LONGCA_MULTIPLY("f16");
  }
#undef LONGCA_MULTIPLY
}

/// The same with b of 16 × 32.
template <typename Element, Inner kA, Inner kB, bool kAdd>
__device__ __forceinline__ void multiply_tile(float (&d)[16], std::uint64_t a, std::uint64_t b) {
#define LONGCA_MULTIPLY(type)                                                          \
  asm volatile(                                                                        \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %18, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type " {" LONGCA_NAMES_16 \
      "}, %16, %17, add, 1, 1, %19, %20;\n}"                                           \
      : LONGCA_D8(0), LONGCA_D8(8)                                                     \
      : "l"(a), "l"(b), "n"(kAdd ? 1 : 0), "n"(kA == Inner::across ? 1 : 0),           \
        "n"(kB == Inner::across ? 1 : 0))
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    LONGCA_MULTIPLY("bf16");
  } else {
    LONGCA_MULTIPLY("f16");
  }
#undef LONGCA_MULTIPLY
}

#undef LONGCA_D8
#undef LONGCA_NAMES_16
#undef LONGCA_NAMES_32

/// Adds four numbers at a multiple of 16 bytes.
__device__ __forceinline__ void add_four(float* to, const float* numbers) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(numbers[0]),
               "f"(numbers[1]), "f"(numbers[2]), "f"(numbers[3])
               : "memory");
}

__device__ __forceinline__ void add_two(float* to, float first, float second) {
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(first), "f"(second)
               : "memory");
}

/// Until this thread's stores and additions are in device memory.
__device__ __forceinline__ void wait_stores_done() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// The same for all but the last group of them (commit_stores).
__device__ __forceinline__ void wait_stores_before_done() {
  asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");
}

/// Not held by L1; says nothing about other memory.
__device__ __forceinline__ std::int32_t load_relaxed(const std::int32_t* from) {
  std::int32_t value;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
/// What was written before add_release, by this thread or through it, is seen after this.
__device__ __forceinline__ std::int32_t load_acquire(const std::int32_t* from) {
  std::int32_t value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ __forceinline__ void add_release(std::int32_t* to, std::int32_t value) {
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

/// Writes `bytes` from shared memory to device memory; else as add_bytes.
__device__ __forceinline__ void store_bytes(void* to, const void* from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}

/// Adds `bytes` of floats in shared memory to those in device memory; addresses and bytes are
/// multiples of 16. Counts as a store (commit_stores).
__device__ __forceinline__ void add_bytes(float* to, const void* from, std::uint32_t bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
      "r"(shared_address(from)), "r"(bytes)
      : "memory");
}

}  // namespace longca::slice::ptx
