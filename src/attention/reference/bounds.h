#pragma once

#include <cstdint>
#include <span>

#include "attention/reference/tile_mask.h"
#include "core/dtype.h"
#include "core/tensor.h"

namespace longca {

/// How far a tile of 64 tokens of one head may be from the reference.
struct TileBound {
  double norm = 0;     ///< of ‖x − ref‖
  double element = 0;  ///< of the largest |x − ref|
};

/// The bound from the error of the same-precision emulation: twice its norm, four times its largest
/// element, plus a floor. `magnitude` is the size √Σ‖term‖² of the terms that the tile is a sum of,
/// at least its norm.
///
/// The floor covers what the emulation shows only by chance, with u the unit roundoff of the dtype
/// (2⁻⁸ of bfloat16, 2⁻²⁴ of float32): 3u/√draws of `magnitude`, because the emulation is one draw
/// of rounding errors, which a tile holds `draws` independent ones of (the delta of a row moves all
/// of its dq); and in float32 the choice of an exponential, 8 · 2⁻²⁴ of the norm, and of an order
/// of summation where terms cancel, 32 · 2⁻²⁴ of `magnitude`.
TileBound make_bound(std::span<const double> exact, std::span<const float> same_precision,
                     double magnitude, std::int64_t draws, DType dtype);

/// The same from figures: ‖exact‖², ‖emulation − exact‖² and the largest element of the latter.
TileBound make_bound(double squared, double error_squared, double largest, double magnitude,
                     std::int64_t draws, DType dtype);

/// How far lse may be off: float32 noise, in absolute terms. A score is a sum of products, its
/// error in any order of summation a small multiple of 2⁻²⁴ · scale · ‖q‖ · ‖k‖
/// (`score_magnitude`); the logarithm and the maximum add roundings of numbers of the size of lse.
/// For normal inputs at d = 128 this is about 1e-5.
///
/// The sum of the exponentials of `keys` keys adds 0.75 √keys · 2⁻²⁴: n positive terms added one
/// after the other in float32 are off by 0.24 √n · 2⁻²⁴ (one standard deviation, rounding errors
/// being independent), kernels add up in four chains or more per row, and the worst of millions of
/// rows is at six deviations. FlashAttention 3 was seen at 4.2e-6 over 32K keys and 5.4e-6 over
/// 64K; from about 200K on the first part alone would call it wrong. Together they are 5.4e-5 over
/// a million keys: a masked tile of 64 of these moves lse by more.
double lse_bound(double score_magnitude, double lse, double keys);

/// What the comparison of one tile found.
struct TileError {
  double squared = 0;            ///< ‖x − ref‖²
  double reference_squared = 0;  ///< ‖ref‖²
  double largest = 0;            ///< largest |x − ref|, or NaN, and where
  std::int64_t token = 0;
  std::int64_t column = 0;
  double found = 0, expected = 0;  ///< there
  /// Error over bound, the larger of the two; +∞ for NaN and for a token that must be 0 and is not.
  double ratio = 0;
  bool must_be_zero = false;  ///< the place named is of such a token
};

/// The ratio of an error whose other members are known: of its norm and of its largest element.
double error_ratio(const TileError& error, const TileBound& bound);

/// Compares tokens [first, first + 64) of a head, cut at the end, with `exact` [64, dim]. Tokens
/// whose bit of `reached` is 0 must be exactly 0. `x` is float32 or bfloat16.
TileError compare_tile(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                       std::span<const double> exact, std::uint64_t reached,
                       const TileBound& bound);

}  // namespace longca
