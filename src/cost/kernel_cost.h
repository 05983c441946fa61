#pragma once

#include <cstdint>

#include "cost/platform.h"

namespace longca::cost {

enum class Pass : std::uint8_t { forward, backward };

/// The shape of an attention problem's tensors. A partition that serves problems of all shapes is
/// priced for the default.
struct HeadShape {
  int heads_q = 64;
  int heads_k = 8;
  int head_dim = 128;  ///< of q, k and v alike: no scheme takes a v of another dimension
  int element_bytes = 2;

  /// Bytes of a token's q, or of its o.
  double row_bytes() const { return static_cast<double>(heads_q) * head_dim * element_bytes; }
  /// Bytes of a token's k and v.
  double key_bytes() const { return 2.0 * heads_k * head_dim * element_bytes; }
  /// Bytes of its dk and dv, which travel as float32 sums.
  double key_sum_bytes() const { return 2.0 * heads_k * head_dim * 4; }
};

/// FLOPs of an allowed (query, key) cell of one query head. Forward S = Q Kᵀ over head_dim and
/// O = P V over value_dim; backward S (recomputed), dQ and dK over head_dim, dP = dO Vᵀ and dV over
/// value_dim: 2.5 × forward where the two are equal.
double flops_per_cell(int head_dim, int value_dim, Pass pass);
/// The same over all query heads.
double flops_per_cell(const HeadShape& shape, Pass pass);

/// The time of a kernel call. Its cells are the allowed ones plus keys_per_row for each row.
struct CallCost {
  double seconds_per_cell = 0;
  double keys_per_row = 0;
  double seconds_per_call = 0;

  double cells(double allowed, double rows) const { return allowed + keys_per_row * rows; }
  /// 0 if there are no cells.
  double seconds(double cells) const {
    return cells > 0 ? cells * seconds_per_cell + seconds_per_call : 0;
  }
};

/// A call of the kernel `slice`.
CallCost slice_call(const Platform& platform, const HeadShape& shape, Pass pass);
/// The same, backward, with half of the heads: give it half the cells, its rate is that of all
/// heads.
CallCost slice_half_heads_call(const Platform& platform, const HeadShape& shape);
/// A forward call of any kernel, on whole tiles.
CallCost any_call(const Platform& platform, const HeadShape& shape);

/// A pass over device memory; `bytes`: read and written together.
double memory_seconds(const Platform& platform, double bytes);
/// Merging two results of each of `rows` rows into one.
double merge_seconds(const Platform& platform, const HeadShape& shape, double rows);
/// A kernel that rounds the float32 sums of `own_keys` keys, and adds the sums of `arriving_keys`.
double rounding_seconds(const Platform& platform, const HeadShape& shape, double own_keys,
                        double arriving_keys);
/// The row sums of O · dO with which a backward pass begins, before any key is needed.
double row_term_seconds(const Platform& platform, const HeadShape& shape, double rows);

}  // namespace longca::cost
