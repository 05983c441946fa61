#pragma once

#include "core/thread_pool.h"

namespace longca {

/// Multiply-add rates of the CPU with operands in registers, all threads of the pool at once, in
/// GFLOP/s (a multiply-add counts 2).
struct FmaPeak {
  double float32 = 0;   ///< fused multiply-adds of the widest vectors
  double bfloat16 = 0;  ///< bf16 dot products into float32; 0 where the CPU has none
};

/// The best of several rounds of a few milliseconds each.
FmaPeak measure_fma_peak(ThreadPool& pool);

}  // namespace longca
