#pragma once

#include <cmath>

#include "attention/reference/cuda/passes.h"
#include "attention/reference/cuda/tile_shape.cuh"

namespace longca::reference {

/// A thread's accumulators: its elements of the exact output, those of the emulation or of its
/// error (TileShape::kTwice), and Σ ‖term‖² of its rows.
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

/// Online softmax of a thread's rows, as OnlineSoftmax on the CPU. Row sums are in float64, so that
/// the reference uses up no part of lse's bound, which is float32 noise.
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

  /// Every row begins with a sink. One of the lanes that share a row counts it.
  __device__ void begin_with(float sink) {
    const float weight = Shape::lane() == 0 ? 1 : 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      maximum_[i] = static_cast<Real>(sink);
      weight_[i] = static_cast<double>(weight);
      same_weight_[i] = weight;
    }
  }

  /// Turns the scores of row i into weights relative to its running row max.
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

  /// Reduces the row sum over the lanes and divides row i by it.
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

/// A thread's part of a TileStatistics.
struct ThreadStatistics {
  double squared = 0, error_squared = 0;
  double terms = 0, row_terms_squared = 0, expected = 0, uncapped = 0;  ///< of TileTerms
  float largest = 0;                                                    ///< error
  float largest_partner = 0;  ///< max ‖row‖² of the partners, per token on threads < 64
  bool seen = false;          ///< own token threadIdx.x has an allowed cell, threads < 64
};

template <typename Shape>
struct StatisticsScratch {
  static constexpr int kWarps = Shape::kThreads / 32;
  double squared[kWarps], error_squared[kWarps], terms[kWarps];
  double row_terms_squared[kWarps], expected[kWarps], uncapped[kWarps];
  float largest[kWarps], largest_partner[kWarps];
  unsigned seen[kWarps];
};

__device__ inline double sum_of_warp(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0U, x, step);
  return x;
}
__device__ inline float largest_of_warp(float x) {
  for (int step = 16; step > 0; step /= 2) x = max(x, __shfl_xor_sync(~0U, x, step));
  return x;
}

/// Reduces over the CTA; the result is valid in thread 0, with `score` the max partner ‖row‖².
template <typename Shape>
__device__ TileStatistics reduce_statistics(const ThreadStatistics& own,
                                            StatisticsScratch<Shape>& scratch) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const double squared = sum_of_warp(own.squared);
  const double error_squared = sum_of_warp(own.error_squared);
  const double terms = sum_of_warp(own.terms);
  const double row_terms_squared = sum_of_warp(own.row_terms_squared);
  const double expected = sum_of_warp(own.expected);
  const double uncapped = sum_of_warp(own.uncapped);
  const float largest = largest_of_warp(own.largest);
  const float largest_partner = largest_of_warp(own.largest_partner);
  const unsigned seen = __ballot_sync(~0U, own.seen);
  if (threadIdx.x % 32 == 0) {
    scratch.squared[warp] = squared;
    scratch.error_squared[warp] = error_squared;
    scratch.terms[warp] = terms;
    scratch.row_terms_squared[warp] = row_terms_squared;
    scratch.expected[warp] = expected;
    scratch.uncapped[warp] = uncapped;
    scratch.largest[warp] = largest;
    scratch.largest_partner[warp] = largest_partner;
    scratch.seen[warp] = seen;
  }
  __syncthreads();
  TileStatistics total;
  if (threadIdx.x != 0) return total;
  for (int w = 0; w < StatisticsScratch<Shape>::kWarps; ++w) {
    total.squared += scratch.squared[w];
    total.error_squared += scratch.error_squared[w];
    total.terms.squared += scratch.terms[w];
    total.terms.of_rows_squared += scratch.row_terms_squared[w];
    total.terms.expected += scratch.expected[w];
    total.terms.uncapped_squared += scratch.uncapped[w];
    total.largest = max(total.largest, static_cast<double>(scratch.largest[w]));
    total.score = max(total.score, static_cast<double>(scratch.largest_partner[w]));
  }
  total.seen = scratch.seen[0] | static_cast<std::uint64_t>(scratch.seen[1]) << 32;
  return total;
}

constexpr bool owns_queries(ReferencePass pass) {
  return pass == ReferencePass::forward || pass == ReferencePass::query_gradient;
}
constexpr bool needs_gradient_of_p(ReferencePass pass) {
  return pass == ReferencePass::query_gradient || pass == ReferencePass::key_gradient;
}

/// The shared memory of a CTA.
template <ReferencePass kPass, typename Shape>
struct SharedTiles {
  using T = typename Shape::Element;
  using Real = typename Shape::Exact;
  static constexpr int kOwnTiles = needs_gradient_of_p(kPass) ? 2 : 1;

  alignas(16) T own[kOwnTiles][Shape::kTileElements];  ///< [kTokens, kDim] of Q, dO; or K, V
  alignas(16) T partner[2][Shape::kTileElements];      ///< [kTokens, kDim] of K, V; or Q, dO
  alignas(16) Real weights[kTokens * Shape::kWeightStride];
  alignas(16) float same_weights[kTokens * Shape::kSameStride];
  std::uint64_t allowed[kTokens];      ///< bit p of own token i
  RowStatistic partner_rows[kTokens];  ///< if queries are the partners
  float summed_squared[kTokens];    ///< ‖row‖² of the partner's tensor in the second product
  float expected_squared[kTokens];  ///< gradients: that times ‖row‖² of its other tensor
  StatisticsScratch<Shape> statistics;
};

}  // namespace longca::reference
