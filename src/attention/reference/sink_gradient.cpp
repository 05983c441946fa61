#include "attention/reference/sink_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace longca {

SinkGradient sink_gradient(std::int64_t head, float sink, std::int64_t tokens,
                           const TilePasses<double>::RowsOf& exact,
                           const TilePasses<float>::RowsOf& same_precision, DType dtype) {
  double value = 0;
  double squared = 0;
  float emulated = 0;
  for (std::int64_t tile = 0; tile < tile_count(tokens); ++tile) {
    const RowStatistics<double> rows = exact(head, tile);
    const RowStatistics<float> rows32 = same_precision(head, tile);
    float of_tile = 0;
    for (std::int64_t i = 0; i < std::min(kTile, tokens - tile * kTile); ++i) {
      if (rows.lse[i] == -std::numeric_limits<double>::infinity()) continue;  // nor has it a sink
      const double p = std::exp(static_cast<double>(sink) - rows.lse[i]);
      value -= p * rows.delta[i];
      squared += p * p * rows.delta_magnitude[i] * rows.delta_magnitude[i];
      of_tile -= std::exp(sink - rows32.lse[i]) * rows32.delta[i];
    }
    emulated += of_tile;
  }
  return {head, value, make_bound({&value, 1}, {&emulated, 1}, {.squared = squared}, 1, dtype)};
}

}  // namespace longca
