#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attention/reference/tile_mask.h"
#include "attention/reference/tile_math.h"

namespace longca {

/// What is subtracted from scores before the exponential; a row without keys has only −∞ there.
template <typename Real>
Real finite_or_zero(Real x) {
  return x == -std::numeric_limits<Real>::infinity() ? Real(0) : x;
}

/// The softmax of kTile rows whose scores come tile by tile (M. Milakov and N. Gimelshein, "Online
/// normalizer calculation for softmax", 2018): weights relative to the largest score so far.
template <typename Real>
class OnlineSoftmax {
 public:
  using Lanes = std::array<Real, kTile>;

  OnlineSoftmax() { maximum_.fill(-std::numeric_limits<Real>::infinity()); }

  /// Turns scores [kTile keys, kTile rows] into weights. Returns the factor, row by row, that
  /// brings what was summed with earlier weights to the new maximum. `p` is aligned to 64 bytes.
  const Lanes& advance(Real* p) {
    const Lanes before = maximum_;
    for (std::int64_t j = 0; j < kTile; ++j) {
      for (std::int64_t i = 0; i < kTile; ++i) {
        maximum_[i] = std::max(maximum_[i], p[j * kTile + i]);
      }
    }
    Lanes shift;
    for (std::int64_t i = 0; i < kTile; ++i) {
      shift[i] = finite_or_zero(maximum_[i]);
      factor_[i] = std::exp(before[i] - shift[i]);
      weight_[i] *= factor_[i];
    }
    for (std::int64_t j = 0; j < kTile; ++j) {
      for (std::int64_t i = 0; i < kTile; ++i) p[j * kTile + i] -= shift[i];
    }
    exp_in_place(p, kTile * kTile);
    for (std::int64_t j = 0; j < kTile; ++j) {
      for (std::int64_t i = 0; i < kTile; ++i) weight_[i] += p[j * kTile + i];
    }
    return factor_;
  }

  /// Sum of the weights of row i; 0 if it has seen no key.
  Real weight(std::int64_t i) const { return weight_[i]; }
  Real lse(std::int64_t i) const { return maximum_[i] + std::log(weight_[i]); }

 private:
  Lanes maximum_;
  Lanes weight_{};
  Lanes factor_{};
};

}  // namespace longca
