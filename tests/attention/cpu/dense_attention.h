#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "mask/mask.h"

namespace longca::test {

/// A float64 tensor [tokens, heads, dim].
struct Doubles {
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::vector<double> values;

  Doubles() = default;
  Doubles(std::int64_t tokens, std::int64_t head_count, std::int64_t head_dim)
      : heads(head_count),
        dim(head_dim),
        values(static_cast<std::size_t>(tokens * head_count * head_dim), 0.0) {}
  double* row(std::int64_t token, std::int64_t head) {
    return values.data() + (token * heads + head) * dim;
  }
  const double* row(std::int64_t token, std::int64_t head) const {
    return values.data() + (token * heads + head) * dim;
  }
};

/// Attention and its gradients by their definitions, cell by cell in float64.
struct DenseAttention {
  Doubles o, dq, dk, dv;
  std::vector<double> lse;  ///< [heads_q, tokens_q], −∞ for a row without keys
};
DenseAttention dense_attention(const Problem& problem, const Mask& mask, const Inputs& inputs);

/// One element of a tensor of any dtype.
double element(const ConstTensorView& x, std::int64_t token, std::int64_t head, std::int64_t k);

}  // namespace longca::test
