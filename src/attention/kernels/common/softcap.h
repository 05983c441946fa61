#pragma once

namespace longca {

/// Scores c · tanh(scale · q·k / c) as our own kernels compute them, in the log2 domain of exp2:
/// all factors that do not depend on the product. With x = scale · q·k / c, tanh(x) is x · P(x²)
/// where |x| is small, with a P of the raw product's square, and 1 − 2 / (1 + exp 2x) elsewhere.
struct Softcap {
  /// Two of a product's square, f₀ + f₁ · square + …: backward kernels need tanh itself for its
  /// slope, others the score alone, which is a multiplication less.
  template <int kTerms>
  struct Polynomials {
    float reach = 0;              ///< up to which magnitude of products
    float score[kTerms] = {};     ///< capped score over product
    float tanh[kTerms - 1] = {};  ///< tanh(x) / x = 1 + square · this
  };

  float cap = 0;          ///< c; 0: scores are as they are, and the rest is unused
  float cap_log2 = 0;     ///< c · log2 e
  float slope = 0;        ///< scale / c: x of a product of 1
  float exponent = 0;     ///< 2 · log2 e · scale / c
  Polynomials<3> near;    ///< |x| ≤ 0.2, as in models: their caps lie far above most scores
  Polynomials<6> middle;  ///< |x| ≤ 0.8

  /// For where P and dS are rounded to 16 bits and no LSE is computed: the capped score over the
  /// product, and the slope 1 − tanh²(x), each f₀ + f₁ · square. Within its reach, |x| ≤ 0.2 or
  /// less for caps above 100, the score (not in log2) is off by at most 3 · 10⁻⁴ and the slope by
  /// 1.5 · 10⁻⁴.
  struct Brief {
    float reach = 0;
    float score[2] = {};
    float slope[2] = {};
  } brief;
};

/// `cap` = 0 gives the Softcap that changes nothing.
Softcap make_softcap(float cap, float scale);

}  // namespace longca
