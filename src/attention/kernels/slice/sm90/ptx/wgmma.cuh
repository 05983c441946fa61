#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

// Warpgroup matrix products: 64 rows, 16 of the inner dimension an instruction, float32 sums.
//
// Element i of an accumulator of 64 × N: with lane l of warp w, row 16 w + l / 4 + 8 · (i / 2 % 2),
// column 8 · (i / 4) + 2 · (l % 4) + i % 2.
namespace longca::slice::ptx {

/// Describes an operand in shared memory, written by TMA with 128-byte swizzle: columns of 64
/// elements, rows 128 bytes apart. `column_bytes` from one column to the next matters where the
/// rows are the inner dimension. Elements further along lie at + bytes / 16.
__device__ __forceinline__ std::uint64_t operand(std::uint32_t address,
                                                 std::uint32_t column_bytes) {
  constexpr std::uint64_t kSwizzle128 = 1ull << 62;
  constexpr std::uint64_t kEightRows = (1024ull >> 4) << 32;
  return kSwizzle128 | kEightRows | (static_cast<std::uint64_t>(column_bytes >> 4) << 16) |
         ((address & 0x3ffff) >> 4);
}

/// Before the first product of a series: registers written so far may be its operands.
__device__ __forceinline__ void products_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// The products since the last commit are a group.
__device__ __forceinline__ void products_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most kPending groups are unfinished.
template <int kPending>
__device__ __forceinline__ void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Keeps the compiler from moving accesses of registers that products use across this point.
template <typename Register, int kCount>
__device__ __forceinline__ void pin(Register (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (std::is_same_v<Register, float>) {
      asm volatile("" : "+f"(registers[i])::"memory");
    } else {
      asm volatile("" : "+r"(registers[i])::"memory");
    }
  }
}

#define LONGCA_D8(i)                                                                          \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define LONGCA_D32(i) LONGCA_D8(i), LONGCA_D8(i + 8), LONGCA_D8(i + 16), LONGCA_D8(i + 24)
#define LONGCA_NAMES_32                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LONGCA_NAMES_64                                                                          \
  LONGCA_NAMES_32                                                                                \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/// d = a · bᵀ (+ d): a of 64 × 16 in registers, b of 128 × 16 in shared memory with the inner
/// dimension along its rows.
template <typename Element, bool kAdd>
__device__ __forceinline__ void multiply(float (&d)[64], const std::uint32_t* a, std::uint64_t b) {
#define LONGCA_MULTIPLY(type)                                                           \
  asm volatile(                                                                         \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"                                  \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" LONGCA_NAMES_64 \
      "}, {%64, %65, %66, %67}, %68, add, 1, 1, 0;\n}"                                  \
      : LONGCA_D32(0), LONGCA_D32(32)                                                   \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0))
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    LONGCA_MULTIPLY("bf16");
  } else {
    LONGCA_MULTIPLY("f16");
  }
#undef LONGCA_MULTIPLY
}

/// The same with b of 64 × 16: the first half of d.
template <typename Element, bool kAdd>
__device__ __forceinline__ void multiply_half(float (&d)[64], const std::uint32_t* a,
                                              std::uint64_t b) {
#define LONGCA_MULTIPLY(type)                                                          \
  asm volatile(                                                                        \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" LONGCA_NAMES_32 \
      "}, {%32, %33, %34, %35}, %36, add, 1, 1, 0;\n}"                                 \
      : LONGCA_D32(0)                                                                  \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0))
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    LONGCA_MULTIPLY("bf16");
  } else {
    LONGCA_MULTIPLY("f16");
  }
#undef LONGCA_MULTIPLY
}

/// d += a · b: a of 64 × 16 in registers, b of 16 × 128 in shared memory, the inner dimension
/// across its rows.
template <typename Element>
__device__ __forceinline__ void multiply_add(float (&d)[64], const std::uint32_t* a,
                                             std::uint64_t b) {
#define LONGCA_MULTIPLY(type)                                                           \
  asm volatile(                                                                         \
      "{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n"                                    \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" LONGCA_NAMES_64 \
      "}, {%64, %65, %66, %67}, %68, add, 1, 1, 1;\n}"                                  \
      : LONGCA_D32(0), LONGCA_D32(32)                                                   \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    LONGCA_MULTIPLY("bf16");
  } else {
    LONGCA_MULTIPLY("f16");
  }
#undef LONGCA_MULTIPLY
}

/// The same with b of 16 × 64.
template <typename Element>
__device__ __forceinline__ void multiply_add(float (&d)[32], const std::uint32_t* a,
                                             std::uint64_t b) {
#define LONGCA_MULTIPLY(type)                                                          \
  asm volatile(                                                                        \
      "{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n"                                   \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" LONGCA_NAMES_32 \
      "}, {%32, %33, %34, %35}, %36, add, 1, 1, 1;\n}"                                 \
      : LONGCA_D32(0)                                                                  \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    LONGCA_MULTIPLY("bf16");
  } else {
    LONGCA_MULTIPLY("f16");
  }
#undef LONGCA_MULTIPLY
}

#undef LONGCA_NAMES_64
#undef LONGCA_NAMES_32
#undef LONGCA_D32
#undef LONGCA_D8

/// Two elements in a register, the first in the lower half.
template <typename Element>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  std::uint32_t packed;
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  }
  return packed;
}

/// Four 8 × 8 matrices into shared memory; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrices(std::uint32_t address, std::uint32_t a,
                                               std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

/// Reads them so.
__device__ __forceinline__ void load_matrices(std::uint32_t* to, std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// x · 2^bits, 0 from 32 on.
__device__ __forceinline__ std::uint32_t shift_left(std::uint32_t x, std::uint32_t bits) {
  std::uint32_t y;
  asm("shl.b32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(bits));
  return y;
}

}  // namespace longca::slice::ptx
