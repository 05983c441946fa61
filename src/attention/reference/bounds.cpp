#include "attention/reference/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace longca {
namespace {

constexpr double kFloat32Roundoff = 0x1p-24;

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return kFloat32Roundoff;
    case DType::bfloat16:
      return 0x1p-8;
    case DType::float16:
      return 0x1p-11;
  }
  return kFloat32Roundoff;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Error over bound; +∞ for NaN and for any error with a bound of 0.
double share_of(double error, double bound) {
  if (error == 0) return 0;
  return error / bound >= 0 ? error / bound : kInfinity;
}

template <typename T>
TileError compare(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                  std::span<const double> exact, std::uint64_t reached, const TileBound& bound) {
  TileError result;
  for (std::int64_t i = 0; i < std::min(kTile, x.tokens - first); ++i) {
    const T* row = x.row<T>(first + i, head);
    const double* expected = exact.data() + i * x.dim;
    const bool zero = (reached >> i & 1) == 0;
    for (std::int64_t c = 0; c < x.dim; ++c) {
      const double found = static_cast<double>(static_cast<float>(row[c]));
      const double error = std::abs(found - expected[c]);
      result.squared += error * error;
      result.reference_squared += expected[c] * expected[c];
      const bool forbidden = zero && !(found == 0);
      if ((error <= result.largest && !forbidden) || result.must_be_zero ||
          std::isnan(result.largest)) {
        continue;  // a NaN compares false, so the first one is recorded and kept
      }
      result.largest = error;
      result.token = first + i;
      result.column = c;
      result.found = found;
      result.expected = expected[c];
      result.must_be_zero = forbidden;
    }
  }
  result.ratio = error_ratio(result, bound);
  return result;
}

}  // namespace

std::int64_t TileTerms::draws(std::int64_t rows) const {
  if (of_rows_squared <= 0) return rows;
  const double effective = std::ceil(5 * squared * squared / of_rows_squared);
  return effective < static_cast<double>(rows) ? static_cast<std::int64_t>(effective) : rows;
}

TileBound make_bound(std::span<const double> exact, std::span<const float> same_precision,
                     const TileTerms& terms, std::int64_t rows, DType dtype) {
  double squared = 0;
  double error_squared = 0;
  double largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double error = std::abs(static_cast<double>(same_precision[i]) - exact[i]);
    squared += exact[i] * exact[i];
    error_squared += error * error;
    largest = std::max(largest, error);
  }
  return make_bound(squared, error_squared, largest, terms, rows, dtype);
}

TileBound make_bound(double squared, double error_squared, double largest, const TileTerms& terms,
                     std::int64_t rows, DType dtype) {
  const double norm = std::sqrt(squared);
  const double magnitude = std::max(norm, terms.magnitude());
  const std::int64_t draws = std::max(terms.draws(rows), std::int64_t{1});
  const double of_scores = 2 * kFloat32Roundoff * terms.score * (1 + terms.steepness());
  const double one_sample =
      (3 * unit_roundoff(dtype) + of_scores) / std::sqrt(static_cast<double>(draws));
  const double floor =
      one_sample * magnitude + kFloat32Roundoff * (8 * norm + 32 * magnitude) + terms.cap_noise();
  return {2 * std::sqrt(error_squared) + floor, 4 * largest + floor};
}

double lse_bound(double score_magnitude, double lse, double keys) {
  return kFloat32Roundoff *
         (4 * score_magnitude + 8 * (1 + std::abs(lse)) + 0.75 * std::sqrt(keys));
}

double error_ratio(const TileError& error, const TileBound& bound) {
  if (error.must_be_zero) return kInfinity;
  return std::max(share_of(std::sqrt(error.squared), bound.norm),
                  share_of(error.largest, bound.element));
}

TileError compare_tile(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                       std::span<const double> exact, std::uint64_t reached,
                       const TileBound& bound) {
  return with_type_of(
      x.dtype, [&]<typename T>(T) { return compare<T>(x, head, first, exact, reached, bound); });
}

}  // namespace longca
