#include <hwy/highway.h>

#include "attention/cpu/micro_kernels.h"

namespace longca::cpu {

#if LONGCA_CPU_AVX512_BF16
const MicroKernels& avx512_bf16_kernels();  // micro_kernels_bfloat16.cpp

const MicroKernels* bfloat16_kernels() {
  const bool present =
      (hwy::SupportedTargets() & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512bf16") != 0;
  return present ? &avx512_bf16_kernels() : nullptr;
}
#else
const MicroKernels* bfloat16_kernels() {
  return nullptr;
}
#endif

}  // namespace longca::cpu
