#pragma once

#include <cmath>

#include "attention/reference/cuda/tile_shape.cuh"

namespace longca::reference {

/// What a thread sums: its elements of the exact output; those of the emulation, or of its error;
/// and Σ ‖term‖² of its rows.
template <typename Shape>
struct TileSums {
  using Real = typename Shape::Exact;

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      terms[i] = 0;
#pragma unroll
      for (int n = 0; n < Shape::kColumns; ++n) exact[i][n] = 0, same[i][n] = 0;
    }
  }
  __device__ void multiply_row(int i, Real factor, float same_factor) {
    terms[i] *= static_cast<float>(factor * factor);
#pragma unroll
    for (int n = 0; n < Shape::kColumns; ++n) exact[i][n] *= factor, same[i][n] *= same_factor;
  }

  Real exact[Shape::kRows][Shape::kColumns];
  float same[Shape::kRows][Shape::kColumns];
  float terms[Shape::kRows];
};

/// The softmax of a thread's rows whose scores come tile by tile, as OnlineSoftmax of the CPU. The
/// weights are summed in float64: lse is held to a bound of float32 noise, of which the reference
/// should not take a part.
template <typename Shape>
class RunningSoftmax {
 public:
  using Real = typename Shape::Exact;
  static constexpr int kRows = Shape::kRows;
  static constexpr int kScores = Shape::kScores;

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) maximum_[i] = -INFINITY, weight_[i] = 0, same_weight_[i] = 0;
  }

  /// Scores of row i to weights relative to its largest score so far.
  __device__ void advance(int i, Real (&p)[kScores], float (&same_p)[kScores],
                          TileSums<Shape>& sums) {
    Real largest = maximum_[i];
#pragma unroll
    for (int j = 0; j < kScores; ++j) largest = max(largest, p[j]);
    largest = largest_of_lanes(largest);
    const Real shift = largest == static_cast<Real>(-INFINITY) ? Real(0) : largest;
    if (largest != maximum_[i]) {
      const Real factor = exponential(maximum_[i] - shift);
      weight_[i] *= static_cast<double>(factor);
      same_weight_[i] *= static_cast<float>(factor);
      sums.multiply_row(i, factor, static_cast<float>(factor));
    }
    maximum_[i] = largest;
    double weight = 0;
#pragma unroll
    for (int j = 0; j < kScores; ++j) {
      p[j] = exponential(p[j] - shift);
      weight += static_cast<double>(p[j]);
      if constexpr (Shape::kTwice) {
        same_p[j] = expf(same_p[j] - static_cast<float>(shift));
        same_weight_[i] += same_p[j];
      }
    }
    weight_[i] += weight;
  }

  /// Sums the weights over the lanes and divides row i by them.
  __device__ void divide(int i, TileSums<Shape>& sums) {
    weight_[i] = sum_of_lanes(weight_[i]);
    same_weight_[i] =
        Shape::kTwice ? sum_of_lanes(same_weight_[i]) : static_cast<float>(weight_[i]);
    const bool any = weight_[i] > 0;
    sums.multiply_row(i, any ? static_cast<Real>(1 / weight_[i]) : Real(0),
                      any ? 1 / same_weight_[i] : 0);
  }

  /// After divide().
  __device__ double lse(int i) const {
    return weight_[i] > 0 ? static_cast<double>(maximum_[i]) + log(weight_[i]) : -INFINITY;
  }
  __device__ float same_lse(int i) const {
    if constexpr (!Shape::kTwice) return static_cast<float>(lse(i));
    return weight_[i] > 0 ? static_cast<float>(maximum_[i]) + logf(same_weight_[i]) : -INFINITY;
  }

 private:
  Real maximum_[kRows];
  double weight_[kRows];
  float same_weight_[kRows];
};

}  // namespace longca::reference
