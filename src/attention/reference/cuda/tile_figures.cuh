#pragma once

#include "attention/reference/cuda/passes.h"
#include "attention/reference/cuda/tile_shape.cuh"

namespace longca::reference {

/// A thread's part of a tile's figures.
struct ThreadFigures {
  double squared = 0, error_squared = 0, terms = 0;
  float largest = 0;          ///< error
  float largest_partner = 0;  ///< ‖row‖² met by this thread's own token, threads below 64
  bool seen = false;          ///< that token has an allowed cell
};

template <typename Shape>
struct FigureScratch {
  static constexpr int kWarps = Shape::kThreads / 32;
  double squared[kWarps], error_squared[kWarps], terms[kWarps];
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

/// The figures of the whole block, in thread 0; `score` is left as the largest ‖row‖² met.
template <typename Shape>
__device__ TileFigure figure_of_block(const ThreadFigures& own, FigureScratch<Shape>& scratch) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const double squared = sum_of_warp(own.squared);
  const double error_squared = sum_of_warp(own.error_squared);
  const double terms = sum_of_warp(own.terms);
  const float largest = largest_of_warp(own.largest);
  const float largest_partner = largest_of_warp(own.largest_partner);
  const unsigned seen = __ballot_sync(~0U, own.seen);
  if (threadIdx.x % 32 == 0) {
    scratch.squared[warp] = squared;
    scratch.error_squared[warp] = error_squared;
    scratch.terms[warp] = terms;
    scratch.largest[warp] = largest;
    scratch.largest_partner[warp] = largest_partner;
    scratch.seen[warp] = seen;
  }
  __syncthreads();
  TileFigure figure;
  if (threadIdx.x != 0) return figure;
  for (int w = 0; w < FigureScratch<Shape>::kWarps; ++w) {
    figure.squared += scratch.squared[w];
    figure.error_squared += scratch.error_squared[w];
    figure.terms += scratch.terms[w];
    figure.largest = max(figure.largest, static_cast<double>(scratch.largest[w]));
    figure.score = max(figure.score, static_cast<double>(scratch.largest_partner[w]));
  }
  figure.seen = scratch.seen[0] | static_cast<std::uint64_t>(scratch.seen[1]) << 32;
  return figure;
}

}  // namespace longca::reference
