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
  std::vector<double> lse;    ///< [heads_q, tokens_q], −∞ for a row without keys and sink
  std::vector<double> dsink;  ///< [heads_q], 0 without sinks
};
/// A mistake to plant.
enum class DenseFault : std::uint8_t {
  none,
  lse_without_sink,    ///< of the result alone: o and gradients go by the right one
  slope_left_out,      ///< gradients take the softcap's 1 − tanh² for 1
  sink_sees_no_value,  ///< delta without the sink's share: of the keys' softmax alone
};
DenseAttention dense_attention(const Problem& problem, const Mask& mask, const Inputs& inputs,
                               DenseFault fault = DenseFault::none);

/// One element of a tensor of any dtype.
double element(const ConstTensorView& x, std::int64_t token, std::int64_t head, std::int64_t k);

}  // namespace longca::test
