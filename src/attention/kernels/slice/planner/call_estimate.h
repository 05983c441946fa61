#pragma once

#include "cost/kernel_cost.h"
#include "mask/mask.h"

namespace longca::slice {

/// Estimated seconds of a call of the sm_90a kernel on one GPU at full clocks, by the lists that it
/// walks: work tiles of `platform.slice` cycles, each to the SM that is free first, in the order
/// and pairs of the kernel; and what `platform.call` says that a call takes beside them. Computing
/// it takes as long as a plan of the kernel, 0.1 to 1 ms at 8K tokens. Cycles are those of 128
/// dimensions, scaled to others. 0 for a mask without queries.
double forward_seconds(const Mask& mask, const cost::HeadShape& shape,
                       const cost::Platform& platform);
/// Of a backward call: its seconds, with the kernels over rows before and after backward_kernel.
struct BackwardEstimate {
  double seconds = 0;
  double sum_bytes = 0;  ///< float32 sums of dK and dV of key tiles that are split among CTAs
};
/// The same of the backward pass.
BackwardEstimate estimate_backward(const Mask& mask, const cost::HeadShape& shape,
                                   const cost::Platform& platform);
double backward_seconds(const Mask& mask, const cost::HeadShape& shape,
                        const cost::Platform& platform);

}  // namespace longca::slice
