#pragma once

#include <cstdint>

#include "attention/api/kernel.h"
#include "attention/kernels/common/mma/params.h"
#include "core/device.h"

/// Host-side helpers of our own kernels' plans, for the current GPU.
namespace longca::mma {

/// How many of `heads` heads of `bytes_per_head` each fit in half of the L2 cache; at least one.
int heads_in_cache(std::int64_t bytes_per_head, int heads);

/// Maximum opt-in shared memory per CTA in bytes.
int device_shared_bytes();

/// The workspace of a backward pass: row terms and float32 sums.
class GradientSums {
 public:
  GradientSums() = default;
  /// For tiles of `tile_m` query rows × `tile_n` keys and KV heads split in `head_parts`.
  GradientSums(const Problem& problem, int tile_m, int tile_n, int head_parts);

  GradientArgs args(const char* kernel, const BackwardArgs& args);
  PlanScratch& scratch() { return scratch_; }
  const PlanScratch& scratch() const { return scratch_; }

 private:
  int tile_n_ = 0;
  int head_parts_ = 1;
  /// Offsets in the scratch; −1 if unused.
  std::int64_t row_terms_ = -1;
  std::int64_t dq_sum_ = -1;
  std::int64_t dk_sum_ = -1;  ///< dk_sum_ and dv_sum_ are used if head_parts > 1
  std::int64_t dv_sum_ = -1;
  PlanScratch scratch_;
};

}  // namespace longca::mma
