#pragma once

#include "cost/kernel_cost.h"
#include "mask/mask.h"

namespace longca::slice {

/// Head dimension of the platform's cycles. Times of others are these, scaled, and up to half off:
/// their kernels have other tiles.
inline constexpr int kCycleDim = 128;

/// The time of a call on one GPU at full clocks.
struct CallEstimate {
  double seconds = 0;
  double cycle_seconds = 0;  ///< of these: the SMs' cycles, which take longer at a lower clock
  double busy_seconds = 0;   ///< of these, the mean over the SMs: until the last CTA ends some wait
  double sum_bytes = 0;      ///< backward: float32 sums of dK and dV of split key tiles
};

/// Estimates a call of the sm_90a kernel by the lists that it walks: work tiles of `platform.slice`
/// cycles, each to the SM that is free first, in the order and pairs of the kernel; and what
/// `platform.call` says that a call takes beside them. Computing it takes as long as a plan of the
/// kernel, 0.1 to 1 ms at 8K tokens. 0 for a mask without queries.
CallEstimate estimate_forward(const Mask& mask, const cost::HeadShape& shape,
                              const cost::Platform& platform);
/// The same of the backward pass, with the kernels over rows before and after backward_kernel.
CallEstimate estimate_backward(const Mask& mask, const cost::HeadShape& shape,
                               const cost::Platform& platform);

}  // namespace longca::slice
