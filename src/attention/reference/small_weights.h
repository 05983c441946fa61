#pragma once

#include <cstdint>

#include "attention/reference/passes.h"

namespace longca {

/// The share of a row's sum of exponentials (a sink's among them) that lies in terms below 2⁻²⁴ of
/// the sum. Added to a float32 sum after the large ones, such a term is rounded by up to itself,
/// most often to nothing, and always the same way, so that the errors do not average out. An honest
/// kernel's lse may be off by up to this share, depending on the order of the keys alone. 0 of
/// normal inputs, where no key is that small; at most keys · 2⁻²⁴. Computed in float64 from the
/// inputs on the problem's device: O(keys · dim).
double share_of_small_weights(const ReferenceProblem& problem, std::int64_t head_q,
                              std::int64_t row);

}  // namespace longca
