#pragma once

#include "attention/reference/cuda/passes.h"
#include "attention/reference/cuda/tile_figures.cuh"
#include "attention/reference/cuda/tile_shape.cuh"

namespace longca::reference {

constexpr bool owns_queries(ReferencePass pass) {
  return pass == ReferencePass::forward || pass == ReferencePass::query_gradient;
}
constexpr bool needs_gradient_of_p(ReferencePass pass) {
  return pass == ReferencePass::query_gradient || pass == ReferencePass::key_gradient;
}

/// What a block keeps in shared memory.
template <ReferencePass kPass, typename Shape>
struct SharedTiles {
  using T = typename Shape::Element;
  using Real = typename Shape::Exact;
  static constexpr int kOwnTiles = needs_gradient_of_p(kPass) ? 2 : 1;

  alignas(16) T own[kOwnTiles][Shape::kTileElements];  ///< Q, dO; or K, V
  alignas(16) T partner[2][Shape::kTileElements];      ///< K, V; or Q, dO
  alignas(16) Real weights[kTokens * Shape::kWeightStride];
  alignas(16) float same_weights[kTokens * Shape::kSameStride];
  std::uint64_t allowed[kTokens];      ///< bit p of own token i
  RowStatistic partner_rows[kTokens];  ///< where queries are the partners
  float summed_squared[kTokens];       ///< ‖row‖² of the partner's tensor that is summed
  FigureScratch<Shape> figures;
};

}  // namespace longca::reference
