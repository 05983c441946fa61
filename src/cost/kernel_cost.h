#pragma once

#include <cstdint>

#include "cost/platform.h"

namespace longca::cost {

enum class Pass : std::uint8_t { forward, backward };

/// What the tensors of an attention problem are. The default is what a partition that serves
/// problems of all shapes is priced for.
struct HeadShape {
  int heads_q = 64;
  int heads_k = 8;
  int head_dim = 128;  ///< of q, k and v: no scheme takes a v of another, so that none is priced
  int element_bytes = 2;

  /// Of a token's queries, or its O.
  double row_bytes() const { return static_cast<double>(heads_q) * head_dim * element_bytes; }
  /// Of a token's key and value.
  double key_bytes() const { return 2.0 * heads_k * head_dim * element_bytes; }
  /// Of their gradients, which travel as float32 sums.
  double key_sum_bytes() const { return 2.0 * heads_k * head_dim * 4; }
};

/// FLOPs of an allowed (query, key) cell, over all heads: two products of matrices forward, five
/// backward, where one is computed again.
double flops_per_cell(const HeadShape& shape, Pass pass);

/// What a call of a kernel takes. Its cells are those allowed and keys_per_row more for each row.
struct CallCost {
  double seconds_per_cell = 0;
  double keys_per_row = 0;
  double seconds_per_call = 0;

  double cells(double allowed, double rows) const { return allowed + keys_per_row * rows; }
  /// 0 where nothing is to do.
  double seconds(double cells) const {
    return cells > 0 ? cells * seconds_per_cell + seconds_per_call : 0;
  }
};

/// Of the kernel `slice`.
CallCost slice_call(const Platform& platform, const HeadShape& shape, Pass pass);
/// The same, backward, for one half of the heads: its cells are those of half of the rows' work.
CallCost slice_half_heads_call(const Platform& platform, const HeadShape& shape);
/// Of any kernel, forward, on whole tiles.
CallCost any_call(const Platform& platform, const HeadShape& shape);

/// A pass over device memory that reads and writes so many bytes together.
double memory_seconds(const Platform& platform, double bytes);
/// Merging two results of each row into one.
double merge_seconds(const Platform& platform, const HeadShape& shape, double rows);
/// A kernel that rounds the sums of `own_keys` to gradients, and adds the sums of `arriving_keys`.
double rounding_seconds(const Platform& platform, const HeadShape& shape, double own_keys,
                        double arriving_keys);
/// The sums of O · dO with which a backward pass begins, before any key is needed.
double row_term_seconds(const Platform& platform, const HeadShape& shape, double rows);

}  // namespace longca::cost
