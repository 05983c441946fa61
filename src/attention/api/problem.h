#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "core/device.h"
#include "core/dtype.h"
#include "mask/mask.h"

namespace longca {

/// The shape of one attention problem: everything but the mask and the values. Tensors are [tokens,
/// heads, dim], where dim is head_dim for q, k, dq, dk and value_dim() for v, o, dO, dv.
struct Problem {
  std::int64_t tokens_q = 0;
  std::int64_t tokens_k = 0;
  int heads_q = 1;
  int heads_k = 1;  ///< divides heads_q; query head h reads KV head h · heads_k / heads_q
  int head_dim = 128;
  int head_dim_v = 0;  ///< of v and o, 1 … head_dim; 0 stands for head_dim. Read value_dim().
  DType dtype = DType::float32;
  float softmax_scale = 0;  ///< 0 stands for 1/√head_dim
  DeviceKind device = DeviceKind::cpu;
  bool backward = false;    ///< the plan will be asked for gradients too
  bool accumulate = false;  ///< the plan will be called with `accumulate` (float32 outputs)
  /// Gradients are to have the same bits from call to call: sums are added up in a fixed order.
  bool deterministic = false;
  /// c > 0: scores s = scale · q·k become c · tanh(s / c) before the softmax (Gemma 2, 2024); 0: as
  /// they are.
  float softcap = 0;
  /// Each query head has a learned logit that joins the softmax's denominator as a key without a
  /// value would (gpt-oss, 2025): lse = log(Σ exp(score) + exp(sink)), and a row without an allowed
  /// key has o = 0, lse = sink. Calls are given the logits and, backward, room for their gradient.
  bool sink = false;

  float scale() const {
    return softmax_scale > 0 ? softmax_scale : 1.0F / std::sqrt(static_cast<float>(head_dim));
  }
  int value_dim() const { return head_dim_v > 0 ? head_dim_v : head_dim; }
  int group_size() const { return heads_q / heads_k; }
};

/// The dimension of q and k, and that of v, as in 192:128.
struct DimPair {
  int head_dim = 0;
  int value_dim = 0;
  bool operator==(const DimPair&) const = default;
};
/// "192:128", or "128" where they are equal.
std::string to_string(const DimPair& dims);
DimPair dims_of(const Problem& problem);

/// FLOPs per allowed cell of the mask and per query head: S = Q Kᵀ over head_dim and O = P V over
/// value_dim.
double forward_flops_per_cell(const Problem& problem);
/// The same of the backward pass: S (recomputed), dQ and dK over head_dim, dP = dO Vᵀ and dV over
/// value_dim; 2.5 × forward where the two are equal.
double backward_flops_per_cell(const Problem& problem);

/// FLOPs of a pass over all cells and query heads. docs/guide/metrics.md.
double forward_flops(const Problem& problem, const Mask& mask);
double backward_flops(const Problem& problem, const Mask& mask);

}  // namespace longca
