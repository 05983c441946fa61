#pragma once

#include <cstdint>

namespace longca {

/// Scores c · tanh(scale · q·k / c) as our own kernels compute them, in the log2 domain of exp2:
/// all factors that do not depend on the product q·k. With x = scale · q·k / c, tanh(x) is x times
/// a polynomial of x² where |x| is small, and 1 − 2 / (1 + exp 2x) elsewhere.
///
/// Where scores are computed (forward, and backward on mma.sync), polynomials are of the raw
/// product's square plus `shift`, a sum that is negative up to |x| = 1.1. Its bits, as an unsigned
/// integer, are the lower the farther the product is from 0, and tell the range: products within a
/// reach have none below its bits. In the backward pass on wgmma they are of the square, f₀ + f₁ ·
/// square + …, and a reach is the largest one. Bits of all ones, or a reach of −1: none.
struct Softcap {
  /// |x| ≤ 0.18, as in models: their caps lie far above most scores. The capped score over the
  /// product is factor · ((square + shift)² + rest): a polynomial of second degree in the square,
  /// by its square completed, as it then reads fewer registers: their file's ports are short beside
  /// wgmma.
  struct Near {
    std::uint32_t reach_bits = 0;
    float rest = 0;
    float factor = 0;
  };
  /// |x| ≤ 0.2, for where P and dS are rounded to 16 bits and no LSE is computed: the score (not in
  /// log2) is off by at most 3 · 10⁻⁴ beside float32's rounding, for which |x| is less than 0.2
  /// with caps above 100, and the slope by 1.5 · 10⁻⁴.
  struct Brief {
    float reach = 0;
    float score[2] = {};  ///< capped score over product
    float slope[2] = {};  ///< 1 − tanh²(x), with which gradients pass
  };
  /// |x| ≤ 0.8.
  struct Middle {
    std::uint32_t reach_bits = 0;
    float score[6] = {};  ///< capped score over product, of square + shift
    float reach = 0;      ///< of the square; where scores are computed, of far ones
    float tanh[5] = {};   ///< tanh(x) / x = 1 + square · this
  };

  float cap = 0;       ///< c; 0: scores are as they are, and the rest is unused
  float cap_log2 = 0;  ///< c · log2 e
  float slope = 0;     ///< scale / c: x of a product of 1
  float exponent = 0;  ///< 2 · log2 e · scale / c
  float shift = 0;
  Near near;
  Brief brief;
  Middle middle;
};

/// `cap` = 0 gives the Softcap that changes nothing.
Softcap make_softcap(float cap, float scale);

}  // namespace longca
