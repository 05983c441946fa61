#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

// Warpgroup matrix products (wgmma) with float32 accumulators, and what prepares their operands.
//
// An instruction multiplies A of 64 × 16 by B of 16 × N. Element i of the 64 × N accumulator in
// lane l of warp w is row 16 w + l / 4 + 8 · (i / 2 % 2), column 8 · (i / 4) + 2 · (l % 4) + i % 2.
namespace longca::slice::ptx {

/// Which dimension of an operand is contiguous in shared memory: the inner one of the product (K),
/// or the outer one, M or N.
enum class Major { k, mn };

/// The matrix descriptor of an operand that TMA wrote with 128-byte swizzle: columns of 64
/// elements, rows 128 bytes apart, so that the stride byte offset (SBO), of 8 rows, is 1024.
/// `column_bytes`, from one column to the next, is the leading byte offset (LBO), which matters to
/// MN-major operands only. Adding 1 to a descriptor advances its address by 16 bytes.
__device__ __forceinline__ std::uint64_t smem_descriptor(std::uint32_t address,
                                                         std::uint32_t column_bytes) {
  constexpr std::uint64_t kSwizzle128 = 1ull << 62;
  constexpr std::uint64_t kEightRows = (1024ull >> 4) << 32;
  return kSwizzle128 | kEightRows | (static_cast<std::uint64_t>(column_bytes >> 4) << 16) |
         ((address & 0x3ffff) >> 4);
}

/// wgmma.fence: orders register writes before the wgmma that read them.
__device__ __forceinline__ void warpgroup_arrive() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void warpgroup_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most kPending of the warpgroup's latest groups are unfinished. The accumulators
/// of the others may be read then, and what they read overwritten.
template <int kPending>
__device__ __forceinline__ void warpgroup_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Keeps the compiler from moving accesses to registers that wgmma uses across this point.
template <typename Register, int kCount>
__device__ __forceinline__ void warpgroup_fence_operand(Register (&registers)[kCount]) {
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
#define LONGCA_D16(i) LONGCA_D8(i), LONGCA_D8(i + 8)
#define LONGCA_D32(i) LONGCA_D16(i), LONGCA_D16(i + 16)
#define LONGCA_D64(i) LONGCA_D32(i), LONGCA_D32(i + 32)
#define LONGCA_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define LONGCA_NAMES_32 \
  LONGCA_NAMES_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LONGCA_NAMES_48 \
  LONGCA_NAMES_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define LONGCA_NAMES_64 \
  LONGCA_NAMES_48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LONGCA_NAMES_96                                                                          \
  LONGCA_NAMES_64                                                                                \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define LONGCA_NAMES_128                                                                           \
  LONGCA_NAMES_96                                                                                  \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
/// Runs LONGCA_WGMMA with the name of Element.
#define LONGCA_WGMMA_OF_ELEMENT                           \
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) { \
    LONGCA_WGMMA("bf16");                                 \
  } else {                                                \
    static_assert(std::is_same_v<Element, __half>);       \
    LONGCA_WGMMA("f16");                                  \
  }

/// d = a · b (+ d), [64, 128]: A [64, 16] in registers, B [16, 128] in shared memory.
template <typename Element, Major kB, bool kAdd>
__device__ __forceinline__ void wgmma_m64n128_rs(float (&d)[64], const std::uint32_t* a,
                                                 std::uint64_t b) {
#define LONGCA_WGMMA(type)                                                              \
  asm volatile(                                                                         \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"                                  \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" LONGCA_NAMES_64 \
      "}, {%64, %65, %66, %67}, %68, add, 1, 1, %70;\n}"                                \
      : LONGCA_D32(0), LONGCA_D32(32)                                                   \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0),          \
        "n"(kB == Major::mn ? 1 : 0))
  LONGCA_WGMMA_OF_ELEMENT
#undef LONGCA_WGMMA
}

/// The same with N = 64, into the first 32 registers of d.
template <typename Element, Major kB, bool kAdd, int kCount>
__device__ __forceinline__ void wgmma_m64n64_rs(float (&d)[kCount], const std::uint32_t* a,
                                                std::uint64_t b) {
  static_assert(kCount >= 32);
#define LONGCA_WGMMA(type)                                                             \
  asm volatile(                                                                        \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" LONGCA_NAMES_32 \
      "}, {%32, %33, %34, %35}, %36, add, 1, 1, %38;\n}"                               \
      : LONGCA_D32(0)                                                                  \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0),         \
        "n"(kB == Major::mn ? 1 : 0))
  LONGCA_WGMMA_OF_ELEMENT
#undef LONGCA_WGMMA
}

/// d += a · b, [64, 256], [64, 192] and [64, 96], with an MN-major B.
template <typename Element>
__device__ __forceinline__ void wgmma_m64n256_rs_add(float (&d)[128], const std::uint32_t* a,
                                                     std::uint64_t b) {
#define LONGCA_WGMMA(type)                                                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" LONGCA_NAMES_128 \
               "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 1;"                                   \
               : LONGCA_D64(0), LONGCA_D64(64)                                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
  LONGCA_WGMMA_OF_ELEMENT
#undef LONGCA_WGMMA
}
template <typename Element>
__device__ __forceinline__ void wgmma_m64n192_rs_add(float (&d)[96], const std::uint32_t* a,
                                                     std::uint64_t b) {
#define LONGCA_WGMMA(type)                                                                       \
  asm volatile("wgmma.mma_async.sync.aligned.m64n192k16.f32." type "." type " {" LONGCA_NAMES_96 \
               "}, {%96, %97, %98, %99}, %100, 1, 1, 1, 1;"                                      \
               : LONGCA_D64(0), LONGCA_D32(64)                                                   \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
  LONGCA_WGMMA_OF_ELEMENT
#undef LONGCA_WGMMA
}

template <typename Element>
__device__ __forceinline__ void wgmma_m64n96_rs_add(float (&d)[48], const std::uint32_t* a,
                                                    std::uint64_t b) {
#define LONGCA_WGMMA(type)                                                                      \
  asm volatile("wgmma.mma_async.sync.aligned.m64n96k16.f32." type "." type " {" LONGCA_NAMES_48 \
               "}, {%48, %49, %50, %51}, %52, 1, 1, 1, 1;"                                      \
               : LONGCA_D32(0), LONGCA_D16(32)                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
  LONGCA_WGMMA_OF_ELEMENT
#undef LONGCA_WGMMA
}

/// d += a · b, MN-major B; N is twice the size of d: 64, 96, 128, 192 or 256.
template <typename Element, int kCount>
__device__ __forceinline__ void wgmma_rs_add(float (&d)[kCount], const std::uint32_t* a,
                                             std::uint64_t b) {
  if constexpr (kCount == 128) {
    wgmma_m64n256_rs_add<Element>(d, a, b);
  } else if constexpr (kCount == 96) {
    wgmma_m64n192_rs_add<Element>(d, a, b);
  } else if constexpr (kCount == 64) {
    wgmma_m64n128_rs<Element, Major::mn, true>(d, a, b);
  } else if constexpr (kCount == 48) {
    wgmma_m64n96_rs_add<Element>(d, a, b);
  } else {
    wgmma_m64n64_rs<Element, Major::mn, true>(d, a, b);
  }
}

/// d = a · b (+ d), [64, 64], into the first 32 registers of d: both operands in shared memory.
template <typename Element, Major kA, Major kB, bool kAdd, int kCount>
__device__ __forceinline__ void wgmma_m64n64_ss(float (&d)[kCount], std::uint64_t a,
                                                std::uint64_t b) {
  static_assert(kCount >= 32);
#define LONGCA_WGMMA(type)                                                             \
  asm volatile(                                                                        \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" LONGCA_NAMES_32 \
      "}, %32, %33, add, 1, 1, %35, %36;\n}"                                           \
      : LONGCA_D32(0)                                                                  \
      : "l"(a), "l"(b), "n"(kAdd ? 1 : 0), "n"(kA == Major::mn ? 1 : 0),               \
        "n"(kB == Major::mn ? 1 : 0))
  LONGCA_WGMMA_OF_ELEMENT
#undef LONGCA_WGMMA
}

/// d = a · b (+ d): both operands in shared memory. N is twice the size of d: 32, 64 or 128.
template <typename Element, Major kA, Major kB, bool kAdd>
__device__ __forceinline__ void wgmma_ss(float (&d)[32], std::uint64_t a, std::uint64_t b) {
  wgmma_m64n64_ss<Element, kA, kB, kAdd>(d, a, b);
}
template <typename Element, Major kA, Major kB, bool kAdd>
__device__ __forceinline__ void wgmma_ss(float (&d)[16], std::uint64_t a, std::uint64_t b) {
#define LONGCA_WGMMA(type)                                                             \
  asm volatile(                                                                        \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %18, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type " {" LONGCA_NAMES_16 \
      "}, %16, %17, add, 1, 1, %19, %20;\n}"                                           \
      : LONGCA_D16(0)                                                                  \
      : "l"(a), "l"(b), "n"(kAdd ? 1 : 0), "n"(kA == Major::mn ? 1 : 0),               \
        "n"(kB == Major::mn ? 1 : 0))
  LONGCA_WGMMA_OF_ELEMENT
#undef LONGCA_WGMMA
}

template <typename Element, Major kA, Major kB, bool kAdd>
__device__ __forceinline__ void wgmma_ss(float (&d)[64], std::uint64_t a, std::uint64_t b) {
#define LONGCA_WGMMA(type)                                                              \
  asm volatile(                                                                         \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"                                  \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" LONGCA_NAMES_64 \
      "}, %64, %65, add, 1, 1, %67, %68;\n}"                                            \
      : LONGCA_D64(0)                                                                   \
      : "l"(a), "l"(b), "n"(kAdd ? 1 : 0), "n"(kA == Major::mn ? 1 : 0),                \
        "n"(kB == Major::mn ? 1 : 0))
  LONGCA_WGMMA_OF_ELEMENT
#undef LONGCA_WGMMA
}

#undef LONGCA_WGMMA_OF_ELEMENT
#undef LONGCA_NAMES_128
#undef LONGCA_NAMES_96
#undef LONGCA_NAMES_64
#undef LONGCA_NAMES_48
#undef LONGCA_NAMES_32
#undef LONGCA_NAMES_16
#undef LONGCA_D64
#undef LONGCA_D32
#undef LONGCA_D16
#undef LONGCA_D8

/// Two elements in a register, the first in the lower 16 bits.
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

template <typename Element>
__device__ __forceinline__ float2 unpack(std::uint32_t word) {
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&word));
  } else {
    return __half22float2(*reinterpret_cast<const __half2*>(&word));
  }
}

/// Stores four 8 × 8 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void stmatrix_x4(std::uint32_t address, std::uint32_t a, std::uint32_t b,
                                            std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t* to, std::uint32_t address) {
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

/// x · 2^bits; 0 for 32 bits and more, where C++ leaves it undefined.
__device__ __forceinline__ std::uint32_t shift_left(std::uint32_t x, std::uint32_t bits) {
  std::uint32_t y;
  asm("shl.b32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(bits));
  return y;
}

}  // namespace longca::slice::ptx
