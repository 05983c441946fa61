#pragma once

#include <cstdint>

// Reductions into device memory (atomic per element, relaxed), and loads and additions that order
// other accesses at GPU scope.
namespace longca::slice::ptx {

/// Adds four floats; `to` is a multiple of 16 bytes.
__device__ __forceinline__ void red_add_v4(float* to, const float* values) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(values[0]),
               "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
}

/// Adds two floats; `to` is a multiple of 8 bytes.
__device__ __forceinline__ void red_add_v2(float* to, float first, float second) {
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(first), "f"(second)
               : "memory");
}

/// Reads from L2, past an L1 line that may be stale; orders no other access.
__device__ __forceinline__ std::int32_t load_relaxed(const std::int32_t* from) {
  std::int32_t value;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
/// Synchronizes with red_add_release: all that was visible to that thread is visible to this one
/// from here on, generic accesses only (see fence_proxy_async_global).
__device__ __forceinline__ std::int32_t load_acquire(const std::int32_t* from) {
  std::int32_t value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
/// If `waits`, spins until `*from` is `value`, and acquires as load_acquire does. `waits` is
/// uniform in the warp, which the compiler cannot know: behind a branch around the loop, or a loop
/// that lanes could leave one by one, it would use no uniform registers.
__device__ __forceinline__ void wait_for(const std::int32_t* from, std::int32_t value, bool waits) {
  asm volatile(
      "{\n"
      ".reg .pred waits, there;\n"
      ".reg .s32 now;\n"
      "setp.ne.s32 waits, %2, 0;\n"
      "again:\n"
      "mov.s32 now, %1;\n"
      "@waits ld.acquire.gpu.global.s32 now, [%0];\n"
      "setp.eq.s32 there, now, %1;\n"
      "@there bra.uni finished;\n"
      "bra.uni again;\n"
      "finished:\n"
      "}" ::"l"(from),
      "r"(value), "r"(static_cast<int>(waits))
      : "memory");
}
__device__ __forceinline__ void red_add_release(std::int32_t* to, std::int32_t value) {
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

}  // namespace longca::slice::ptx
