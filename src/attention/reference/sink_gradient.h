#pragma once

#include <cstdint>

#include "attention/reference/bounds.h"
#include "attention/reference/passes.h"
#include "core/dtype.h"

namespace longca {

/// dsink of a query head.
struct SinkGradient {
  std::int64_t head = 0;
  double value = 0;
  TileBound bound;
};

/// −Σ over the `tokens` rows of a query head of exp(sink − lse) delta, from the statistics of its
/// query tiles, exact and as an honest kernel has them. Its bound is that of a tile of one element,
/// whose rounding error is one draw; its terms' errors are those of their deltas.
SinkGradient sink_gradient(std::int64_t head, float sink, std::int64_t tokens,
                           const TilePasses<double>::RowsOf& exact,
                           const TilePasses<float>::RowsOf& same_precision, DType dtype);

}  // namespace longca
