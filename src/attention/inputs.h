#pragma once

#include <cstdint>

#include "attention/problem.h"
#include "core/tensor.h"

namespace longca {

/// The values of one problem: standard normal, rounded to the problem's dtype.
struct Inputs {
  HostTensor q, k, v, dout;

  std::int64_t bytes() const { return q.bytes() + k.bytes() + v.bytes() + dout.bytes(); }
};

/// Draws from Philox keyed by the seed, one stream per tensor, by arithmetic that IEEE 754 fixes to
/// the bit, so that every device can draw the same values.
Inputs make_inputs(const Problem& problem, std::uint64_t seed);

}  // namespace longca
