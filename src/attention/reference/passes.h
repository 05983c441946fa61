#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>

#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "attention/reference/online_softmax.h"
#include "attention/reference/tile_mask.h"
#include "core/memory.h"
#include "mask/mask.h"

namespace longca {

/// What the reference computes from.
struct ReferenceProblem {
  Problem shape;
  Mask mask;
  const Inputs* inputs = nullptr;

  int mask_head(std::int64_t head_q) const {
    return static_cast<int>(head_q * mask.heads() / shape.heads_q);
  }
  /// Keys that a row of a tile sees in the mean.
  double mean_keys(std::int64_t head_q, std::int64_t tile) const {
    const Range rows = {tile * kTile, std::min((tile + 1) * kTile, mask.q_tokens())};
    return static_cast<double>(mask.area_in(mask_head(head_q), rows, {0, mask.k_tokens()})) /
           static_cast<double>(rows.size());
  }
};

/// What the backward pass needs of the forward pass, for the rows of one query tile and head.
template <typename Real>
struct RowStatistics {
  std::array<Real, kTile> lse{};    ///< −∞ for a row without keys
  std::array<Real, kTile> delta{};  ///< dO · O
};

/// Magnitudes are sizes of the terms that a result is a sum of, √Σ ‖term‖²: where terms cancel,
/// rounding errors are of this size, not of the result's.
struct ForwardMagnitudes {
  double score = 0;  ///< largest scale · ‖q‖ · ‖k‖ over the tiles met
  double o = 0;
};

/// Attention over one tile at a time, in the words of the textbook. With Real = double this is the
/// reference itself. With Real = float it is what an honest kernel of the problem's dtype does:
/// float32 sums, and P, dS and the results rounded to the dtype (P before the division by its sum,
/// as blocked kernels do). Results are [kTile, dim] with zero past the last token. One object per
/// thread.
template <typename Real>
class TilePasses {
 public:
  explicit TilePasses(const ReferenceProblem& problem);

  /// O and the row statistics of query tile `tile` of a query head.
  ForwardMagnitudes forward(std::int64_t head_q, std::int64_t tile, Real* o,
                            RowStatistics<Real>& rows);

  /// dQ of the same tile, given its row statistics. Returns its magnitude.
  double query_gradient(std::int64_t head_q, std::int64_t tile, const RowStatistics<Real>& rows,
                        Real* dq);

  struct KeyMagnitudes {
    double dk = 0;
    double dv = 0;
    std::uint64_t seen = 0;  ///< bit i: some query sees key i of the tile
  };
  /// dK and dV of key tile `tile` of a KV head: the sum over all query tiles that see it, of all
  /// query heads of the group, whose row statistics `rows_of(head_q, query tile)` returns.
  using RowsOf = std::function<RowStatistics<Real>(std::int64_t head_q, std::int64_t tile)>;
  KeyMagnitudes key_gradients(std::int64_t head_k, std::int64_t tile, const RowsOf& rows_of,
                              Real* dk, Real* dv);

 private:
  using Lanes = std::array<Real, kTile>;
  /// What a key tile collects beside its sums, key by key: the squares of magnitudes.
  struct KeyTerms {
    Lanes dk{}, dv{};
    std::uint64_t seen = 0;
  };

  void finish_forward(std::int64_t head_q, std::int64_t tile, const OnlineSoftmax<Real>& softmax,
                      Real* o, RowStatistics<Real>& rows);
  void add_query_tile(const TileMask& seen_by, const TileMask::Partner& partner,
                      const RowStatistics<Real>& rows, KeyTerms& terms);
  void load_rows(const TensorView& tensor, std::int64_t head, std::int64_t tile, Real* out) const;
  void load_columns(const TensorView& tensor, std::int64_t head, std::int64_t tile,
                    Real* out) const;
  void compute_scores(const Real* partner, const Real* owner, const TileMask& mask,
                      const TileMask::Partner& which);
  void round_results(Real* values, std::int64_t count) const;
  void store(const Real* columns, Real* rows) const;
  HostBuffer reals(std::int64_t count) const {
    return HostBuffer(count * static_cast<std::int64_t>(sizeof(Real)));
  }

  const ReferenceProblem& problem_;
  Real scale_;
  std::int64_t dim_;
  std::int64_t row_;  ///< stride of a loaded row: dim, rounded up to a multiple of 4 with zeros
  // The tile that owns the results, transposed: [dim, kTile], a lane per token.
  HostBuffer owner_a_, owner_b_;
  // The tile met, row by row: [kTile, row_].
  HostBuffer partner_a_, partner_b_;
  // Scores, then P; dP, then dS: [kTile of the partner, kTile lanes].
  HostBuffer scores_, gradients_;
  // Sums, transposed as the owner: [row_, kTile].
  HostBuffer sum_a_, sum_b_;
};

}  // namespace longca
