#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "attention/reference/tile_mask.h"
#include "core/dtype.h"
#include "core/tensor.h"

namespace longca {

/// The sum of squares ‖term‖² that a tile is a sum of, and how it spreads over the tile's rows.
struct TileTerms {
  double squared = 0;          ///< Σ over rows of t, the row's Σ‖term‖²
  double of_rows_squared = 0;  ///< Σ t²
  /// Of gradients of scores: `squared` with ‖dO‖ ‖v‖ / √dv, the deviation of dP over random values,
  /// in the place of |dP| + |delta|.
  double expected = 0;
  double score = 0;  ///< the largest |score| before a softcap, or more: scale · ‖q‖ · ‖k‖
  /// With a softcap: `squared` with 1 in the place of the slopes 1 − tanh², and the largest capped
  /// score, or more.
  double uncapped_squared = 0;
  double capped_score = 0;
  double softcap = 0;  ///< of gradients of scores: the cap, or 0

  void add_row(double t) {
    squared += t;
    of_rows_squared += t * t;
  }
  /// √Σ‖term‖². dP and delta are sums themselves, with errors of their terms' size: where a tile
  /// has a few cells that matter, and dP is near 0 in them by chance, four fifths of what is
  /// expected. Of normal inputs, the sum over a tile of more cells is never so small.
  double magnitude() const { return std::sqrt(std::max(squared, 0.64 * expected)); }
  /// What a softcap's tanh adds to the errors: an honest one is off by up to 4 · 2⁻²⁴ of itself,
  /// and so are scores, whose absolute error is the relative one of P; slopes 1 − tanh² by twice 4
  /// · 2⁻²⁴, however small they are.
  double cap_noise() const {
    return 4 * 0x1p-24 * (capped_score + 2) * std::sqrt(uncapped_squared);
  }
  /// How much a slope 1 − tanh²(score / softcap) changes with a score, relative to itself, at most:
  /// 2 tanh / softcap. Of a cap that scores stay below, little; one far below them turns scores
  /// into signs, and the few slopes between these hang on the last bits of a score.
  double steepness() const {
    return softcap > 0 ? 2 * std::min(score, softcap) / (softcap * softcap) : 0;
  }
  /// How many independent rounding errors a tile has whose `rows` rows would each have one: no more
  /// than 5 (Σ t)² / Σ t², since where scores are peaked few rows hold all. Of normal inputs even
  /// the first tile of a causal mask, where t falls as 1 / row, keeps its 64.
  std::int64_t draws(std::int64_t rows) const;
};

/// Error bounds of a tile of 64 tokens of one head.
struct TileBound {
  double norm = 0;     ///< of ‖x − ref‖
  double element = 0;  ///< of max |x − ref|
};

/// Twice the norm and four times the largest element of the error of the same-precision emulation,
/// plus a floor. Let u be the unit roundoff of the dtype (2⁻⁸ for bfloat16, 2⁻¹¹ for float16, 2⁻²⁴
/// for float32), magnitude that of the terms, or the tile's norm if it is larger, and draws the
/// number of independent errors of a tile whose `rows` rows would each have one. The floor is the
/// sum of:
///
/// - 3u/√draws · magnitude, because the emulation is one sample of rounding errors (the delta of a
///   row shifts its whole dq row);
/// - 2 · 2⁻²⁴/√draws · score · magnitude, likewise for the roundings of a score, whose absolute
///   error is the relative one of P: three times its standard deviation, which is 0.7 · 2⁻²⁴ of
///   scale · ‖q‖ · ‖k‖ where q and k are alike and four or more chains sum their product, 0.2
///   where they are not. Of normal inputs it is a tenth of the next. With a softcap gradients of
///   scores have it `steepness` more times, by their slopes:
/// - 8 · 2⁻²⁴ · norm for the implementation of exp in float32, and 32 · 2⁻²⁴ · magnitude for the
///   order of summation where terms cancel;
/// - cap_noise of the terms.
TileBound make_bound(std::span<const double> exact, std::span<const float> same_precision,
                     const TileTerms& terms, std::int64_t rows, DType dtype);

/// As above from ‖exact‖², ‖emulation − exact‖² and max |emulation − exact|.
TileBound make_bound(double squared, double error_squared, double largest, const TileTerms& terms,
                     std::int64_t rows, DType dtype);

/// The absolute bound of the error of lse: float32 noise. The error of a score, in any order of
/// summation, is a small multiple of 2⁻²⁴ · scale · ‖q‖ · ‖k‖ (`score_magnitude`; a softcap rounds
/// scores again, which are no larger than it); the maximum and the logarithm round numbers of the
/// size of lse. For normal inputs at d = 128 this is about 1e-5.
///
/// The sum of the exponentials of `keys` keys adds 0.75 √keys · 2⁻²⁴: a sequential float32 sum of n
/// positive terms has an error of standard deviation 0.24 √n · 2⁻²⁴, kernels sum a row in at least
/// four chains, and the worst of millions of rows lies at six deviations. Measured with
/// FlashAttention 3: 4.2e-6 over 32K keys, 5.4e-6 over 64K, which would exceed the first part alone
/// from about 200K on. Over a million keys the whole bound is 5.4e-5, below the effect of one
/// wrongly masked tile of 64 keys.
double lse_bound(double score_magnitude, double lse, double keys);

/// The error of one tile.
struct TileError {
  double squared = 0;            ///< ‖x − ref‖²
  double reference_squared = 0;  ///< ‖ref‖²
  double largest = 0;            ///< max |x − ref|, or NaN; at (token, column)
  std::int64_t token = 0;
  std::int64_t column = 0;
  double found = 0, expected = 0;  ///< at (token, column)
  /// max of error / bound over norm and element; +∞ for NaN and for a nonzero that must be 0.
  double ratio = 0;
  bool must_be_zero = false;  ///< (token, column) must be 0 and is not
};

/// TileError::ratio from the other members.
double error_ratio(const TileError& error, const TileBound& bound);

/// Compares tokens [first, min(first + 64, tokens)) of a head of `x` [tokens, heads, dim] with
/// `exact` [64, dim]. Tokens whose bit of `reached` is 0 must be exactly 0.
TileError compare_tile(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                       std::span<const double> exact, std::uint64_t reached,
                       const TileBound& bound);

}  // namespace longca
