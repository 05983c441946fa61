#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "mask/mask_slice.h"

namespace longca {

/// The values of one query head and its KV head in host memory, float32: q and k [tokens, dim], v
/// and dO [tokens, value_dim].
struct HeadValues {
  std::vector<float> q, k, v, dout;
  int dim = 0;
  int value_dim = 0;
  double scale = 1;
  double softcap = 0;         ///< Problem::softcap
  std::optional<float> sink;  ///< of the query head, if the problem has sinks
};

/// One query row of a head in float64.
struct ExactRow {
  double lse = 0;                            ///< −∞ without keys and sink
  double delta = 0;                          ///< dO · O
  std::vector<double> o, dq;                 ///< [value_dim], [dim]
  double o_magnitude = 0, dq_magnitude = 0;  ///< √Σ ‖term‖², to which rounding errors scale
};

/// One key of a KV head in float64, summed over query heads.
struct ExactKey {
  std::vector<double> dk, dv;  ///< [dim], [value_dim]
  double dk_magnitude = 0, dv_magnitude = 0;
};

/// scale · q · k, capped by a `softcap` above 0, of one query row q [dim] and its `keys`, in their
/// order, in float64; k is [tokens, dim].
std::vector<double> exact_scores(std::span<const float> q, std::span<const float> k, int dim,
                                 double scale, double softcap, std::span<const Range> keys);

/// Query `row` of the head, which attends to `keys`, by the definition of attention in float64; a
/// check of the GPU reference. O(keys · dim), on the calling thread.
ExactRow exact_row(const HeadValues& head, std::int64_t row, std::span<const Range> keys);

/// One query head's contribution to dK and dV of `key`, to which `queries` attend. `rows` returns
/// lse and delta of a row.
struct RowLookup {
  std::function<double(std::int64_t row)> lse, delta;
};
ExactKey exact_key(const HeadValues& head, std::int64_t key, std::span<const Range> queries,
                   const RowLookup& rows);

/// Adds another query head's contribution to `sum`.
void add(const ExactKey& part, ExactKey& sum);

}  // namespace longca
