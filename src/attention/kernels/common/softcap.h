#pragma once

namespace longca {

/// Scores c · tanh(scale · q·k / c) as our own kernels compute them, in the log2 domain of exp2:
/// all factors that do not depend on the product q·k. With x = scale · q·k / c, tanh(x) is x times
/// a polynomial of x² where |x| is small, and 1 − 2 / (1 + exp 2x) elsewhere. Polynomials are of
/// the raw product's square, f₀ + f₁ · square + …, and have a reach: the largest such square.
struct Softcap {
  /// |x| ≤ 0.2, as in models: their caps lie far above most scores.
  struct Near {
    float reach = 0;
    float score[3] = {};  ///< capped score over product
  };
  /// Likewise, for where P and dS are rounded to 16 bits and no LSE is computed: the score (not in
  /// log2) is off by at most 3 · 10⁻⁴ beside float32's rounding, for which |x| is less than 0.2
  /// with caps above 100, and the slope by 1.5 · 10⁻⁴.
  struct Brief {
    float reach = 0;
    float score[2] = {};
    float slope[2] = {};  ///< 1 − tanh²(x), with which gradients pass
  };
  /// |x| ≤ 0.8.
  struct Middle {
    float reach = 0;
    float score[6] = {};
    float tanh[5] = {};  ///< tanh(x) / x = 1 + square · this
  };

  float cap = 0;       ///< c; 0: scores are as they are, and the rest is unused
  float cap_log2 = 0;  ///< c · log2 e
  float slope = 0;     ///< scale / c: x of a product of 1
  float exponent = 0;  ///< 2 · log2 e · scale / c
  Near near;
  Brief brief;
  Middle middle;
};

/// `cap` = 0 gives the Softcap that changes nothing.
Softcap make_softcap(float cap, float scale);

}  // namespace longca
