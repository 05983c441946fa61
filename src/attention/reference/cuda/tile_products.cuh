#pragma once

#include "attention/reference/cuda/tile_shape.cuh"

namespace longca::reference {

/// exact[i][j] = own[row i] · partner[token j]; the same in float32 in `same` if kTwice.
template <typename Shape>
__device__ void row_products(const typename Shape::Element* own,
                             const typename Shape::Element* partner,
                             typename Shape::Exact (&exact)[Shape::kRows][Shape::kScores],
                             float (&same)[Shape::kRows][Shape::kScores]) {
  using Real = typename Shape::Exact;
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kScores; ++j) exact[i][j] = 0, same[i][j] = 0;
  }
  const auto* a_rows = own + Shape::group() * Shape::kStride;
  const auto* b_rows = partner + Shape::lane() * Shape::kStride;
  constexpr int kStep = Shape::kPack;
#pragma unroll 1
  for (int c = 0; c < Shape::kDim; c += kStep) {
    float a[Shape::kRows][kStep];
    float b[Shape::kScores][kStep];
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      load_elements(a_rows + i * Shape::kRowStep * Shape::kStride + c, a[i]);
    }
#pragma unroll
    for (int j = 0; j < Shape::kScores; ++j) {
      load_elements(b_rows + j * kLanes * Shape::kStride + c, b[j]);
    }
    if constexpr (Shape::kSumsInParts) {
#pragma unroll
      for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
        for (int j = 0; j < Shape::kScores; ++j) {
          Real part = static_cast<Real>(a[i][0]) * static_cast<Real>(b[j][0]);
#pragma unroll
          for (int s = 1; s < kStep; ++s) {
            part += static_cast<Real>(a[i][s]) * static_cast<Real>(b[j][s]);
          }
          exact[i][j] += part;
        }
      }
    } else {
#pragma unroll
      for (int s = 0; s < kStep; ++s) {
#pragma unroll
        for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
          for (int j = 0; j < Shape::kScores; ++j) {
            exact[i][j] += static_cast<Real>(a[i][s]) * static_cast<Real>(b[j][s]);
            if constexpr (Shape::kTwice) same[i][j] += a[i][s] * b[j][s];
          }
        }
      }
    }
  }
}

/// sum[i][n] += Σ_j weights[j][row i] · partner[j][column n]; likewise `same` from `same_weights`.
template <typename Shape>
__device__ void add_products(const typename Shape::Exact* weights, const float* same_weights,
                             const typename Shape::Element* partner,
                             typename Shape::Exact (&sum)[Shape::kRows][Shape::kColumns],
                             float (&same)[Shape::kRows][Shape::kColumns]) {
  using Real = typename Shape::Exact;
  const int first = Shape::group() * Shape::kRows;
#pragma unroll 2
  for (int j = 0; j < kTokens; ++j) {
    Real w[Shape::kRows];
    float e[Shape::kRows];
    load_elements(weights + j * Shape::kWeightStride + first, w);
    load_elements(same_weights + j * Shape::kSameStride + first, e);
#pragma unroll
    for (int piece = 0; piece < Shape::kColumns / Shape::kPiece; ++piece) {
      float c[Shape::kPiece];
      load_elements(partner + j * Shape::kStride + Shape::column(piece * Shape::kPiece), c);
#pragma unroll
      for (int n = 0; n < Shape::kPiece; ++n) {
        const int column = piece * Shape::kPiece + n;
#pragma unroll
        for (int i = 0; i < Shape::kRows; ++i) {
          sum[i][column] += w[i] * static_cast<Real>(c[n]);
          same[i][column] += e[i] * c[n];
        }
      }
    }
  }
}

}  // namespace longca::reference
