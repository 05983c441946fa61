#pragma once

#include <cstdint>

#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "mask/mask.h"

namespace longca {

/// The quality of a block-sparse mask relative to full attention within its slices (all keys, or
/// causal), estimated from drawn rows.
struct SelectionQuality {
  /// Mean probability mass of the full softmax over the keys, without sinks, in kept blocks.
  double kept_mass = 0;
  double error_full = 0;  ///< ‖O − O of full attention‖ / ‖O of full attention‖ over the rows
  int rows = 0;           ///< number of drawn rows; rows without a key do not count
};

/// Computed from the inputs in float64 on the host, not by any kernel, for up to 8 evenly spaced
/// query heads with up to 8 rows each, drawn from the seed. O(rows · keys · dim).
SelectionQuality selection_quality(const Problem& problem, const Mask& mask, const Inputs& inputs,
                                   std::uint64_t seed);

}  // namespace longca
