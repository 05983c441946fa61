#pragma once

#include <cstdint>

#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "mask/mask.h"

namespace longca {

/// What a block-sparse mask's selection costs in quality, of drawn rows: against attention to all
/// that its slices allow, every key or, causal, every earlier one.
struct SelectionQuality {
  double kept_mass = 0;  ///< probability that the full softmax gives to keys of kept blocks, mean
  double error_full = 0;  ///< ‖O − O of full attention‖ / ‖O of full attention‖ over the rows
  int rows = 0;           ///< drawn; rows that see no key at all are not
};

/// In float64 on the host, from the inputs: up to 8 query heads, evenly apart, and in each up to 8
/// rows drawn from the seed. O(rows · keys · dim); O is that of the mask by its definition, not of
/// any kernel.
SelectionQuality selection_quality(const Problem& problem, const Mask& mask, const Inputs& inputs,
                                   std::uint64_t seed);

}  // namespace longca
