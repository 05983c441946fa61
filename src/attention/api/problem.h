#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "core/device.h"
#include "core/dtype.h"
#include "mask/mask.h"

namespace longca {

/// The shape of one attention: everything but the mask and the values. Tensors are [tokens, heads,
/// dim].
struct Problem {
  std::int64_t tokens_q = 0;
  std::int64_t tokens_k = 0;
  int heads_q = 1;
  int heads_k = 1;  ///< divides heads_q; query head h reads KV head h · heads_k / heads_q
  int head_dim = 128;
  DType dtype = DType::float32;
  float softmax_scale = 0;  ///< 0 stands for 1/√head_dim
  DeviceKind device = DeviceKind::cpu;
  bool backward = false;    ///< the plan will be asked for gradients too
  bool accumulate = false;  ///< the plan will be called with `accumulate` (float32 outputs)
  /// Gradients are to be equal to the bit from call to call: sums are added up in a fixed order.
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
  int group_size() const { return heads_q / heads_k; }
};

/// FLOPs of the forward pass: two products of `area` cells per query head. DESIGN, Terms.
double forward_flops(const Problem& problem, const Mask& mask);
/// FLOPs of the backward pass: 2.5 × forward (five products, one of them recomputed).
double backward_flops(const Problem& problem, const Mask& mask);

}  // namespace longca
