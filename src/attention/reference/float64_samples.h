#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "mask/mask_slice.h"

namespace longca {

/// The values of one query head and its KV head in host memory, float32 [tokens, dim].
struct HeadValues {
  std::vector<float> q, k, v, dout;
  int dim = 0;
  double scale = 1;
};

/// One query row of a head in float64.
struct ExactRow {
  double lse = 0;    ///< −∞ without keys
  double delta = 0;  ///< dO · O
  std::vector<double> o, dq;
  double o_magnitude = 0, dq_magnitude = 0;  ///< √Σ ‖term‖²: the size of rounding errors
};

/// One key of a KV head in float64, summed over query heads.
struct ExactKey {
  std::vector<double> dk, dv;
  double dk_magnitude = 0, dv_magnitude = 0;
};

/// Row `row` of the head, which sees `keys`, by the textbook: what holds a faster reference. O(keys
/// · dim), on the calling thread.
ExactRow exact_row(const HeadValues& head, std::int64_t row, std::span<const Range> keys);

/// What one query head adds to the gradients of key `key`, which `queries` see; lse and delta of a
/// row are looked up.
struct RowLookup {
  std::function<double(std::int64_t row)> lse, delta;
};
ExactKey exact_key(const HeadValues& head, std::int64_t key, std::span<const Range> queries,
                   const RowLookup& rows);

/// Adds another query head's part.
void add(const ExactKey& part, ExactKey& sum);

}  // namespace longca
