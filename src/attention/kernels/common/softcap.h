#pragma once

namespace longca {

/// Scores c · tanh(scale · q·k / c) as our own kernels compute them, in the log2 domain of exp2:
/// all factors that do not depend on the product. With x = scale · q·k / c, tanh(x) is x · P(x²)
/// where |x| is small, with a P of the raw product's square, and 1 − 2 / (1 + exp 2x) elsewhere.
struct Softcap {
  /// A polynomial of a product's square, f₀ + f₁ · square + …
  template <int kTerms>
  struct Polynomial {
    float factors[kTerms] = {};
  };

  float cap = 0;           ///< c; 0: scores are as they are, and the rest is unused
  float cap_log2 = 0;      ///< c · log2 e
  float per_cap_log2 = 0;  ///< 1 / cap_log2
  float exponent = 0;      ///< 2 · log2 e · scale / c
  /// Magnitudes of products up to which the polynomials serve: |x| = 0.2, as in models, whose caps
  /// lie far above most scores, and |x| = 0.8.
  float near_reach = 0;
  float middle_reach = 0;
  Polynomial<3> near;        ///< capped score over product
  Polynomial<3> near_slope;  ///< 1 − tanh² x
  Polynomial<6> middle;      ///< capped score over product
};

/// `cap` = 0 gives the Softcap that changes nothing.
Softcap make_softcap(float cap, float scale);

}  // namespace longca
