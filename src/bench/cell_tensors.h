#pragma once

#include <cstdint>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "core/tensor.h"

namespace longca {

/// What a cell writes. Gradients exist only for a backward pass.
struct Outputs {
  Device* device = nullptr;
  Tensor o;  ///< [tokens_q, heads_q, dim]
  Lse lse;   ///< [heads_q, tokens_q]
  Tensor dq, dk, dv;

  static Outputs for_problem(const Problem& problem);

  ForwardArgs forward_args(const Inputs& inputs) const;
  BackwardArgs backward_args(const Inputs& inputs) const;
  /// Fills with what no kernel computes, so that whatever is not written shows.
  void poison_forward() const;
  void poison_backward() const;
  /// Hashes of (o, lse) and of (dq, dk, dv): equal for results that are equal to the bit.
  std::uint64_t forward_fingerprint() const;
  std::uint64_t backward_fingerprint() const;
};

/// A hash of all input values, to notice a kernel that writes into them.
std::uint64_t fingerprint(const Inputs& inputs, Device& device);

/// Bytes of inputs and outputs of a problem's pass.
std::int64_t tensor_bytes(const Problem& problem);

}  // namespace longca
