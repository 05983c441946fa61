#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "attention/reference/bounds.h"
#include "attention/reference/tile_mask.h"
#include "attention/reference/tile_math.h"
#include "core/memory.h"
#include "mask/list_of_head.h"
#include "mask/mask.h"

namespace longca {

/// The value subtracted from scores before exp; 0 for a row without keys, whose scores are all −∞.
template <typename Real>
Real finite_or_zero(Real x) {
  return x == -std::numeric_limits<Real>::infinity() ? Real(0) : x;
}

/// Online softmax of kTile rows (M. Milakov and N. Gimelshein, "Online normalizer calculation for
/// softmax", 2018): weights relative to the running row max.
template <typename Real>
class OnlineSoftmax {
 public:
  using Lanes = std::array<Real, kTile>;

  OnlineSoftmax() { maximum_.fill(-std::numeric_limits<Real>::infinity()); }
  /// Every row begins with a sink: a weight of score `sink` that has no value.
  explicit OnlineSoftmax(Real sink) {
    maximum_.fill(sink);
    weight_.fill(1);
  }

  /// Turns scores [kTile keys, kTile rows], 64-byte aligned, into weights. Returns the factor per
  /// row that rescales sums of earlier weights to the new row max.
  const Lanes& advance(Real* p) {
    const Lanes before = maximum_;
    for (std::int64_t j = 0; j < kTile; ++j) {
      for (std::int64_t i = 0; i < kTile; ++i) {
        maximum_[i] = std::max(maximum_[i], p[j * kTile + i]);
      }
    }
    Lanes shift;
    for (std::int64_t i = 0; i < kTile; ++i) {
      shift[i] = finite_or_zero(maximum_[i]);
      factor_[i] = std::exp(before[i] - shift[i]);
      weight_[i] *= factor_[i];
    }
    for (std::int64_t j = 0; j < kTile; ++j) {
      for (std::int64_t i = 0; i < kTile; ++i) p[j * kTile + i] -= shift[i];
    }
    exp_in_place(p, kTile * kTile);
    for (std::int64_t j = 0; j < kTile; ++j) {
      for (std::int64_t i = 0; i < kTile; ++i) weight_[i] += p[j * kTile + i];
    }
    return factor_;
  }

  /// Sum of the weights of row i; 0 if it has neither key nor sink.
  Real weight(std::int64_t i) const { return weight_[i]; }
  Real lse(std::int64_t i) const { return maximum_[i] + std::log(weight_[i]); }

 private:
  Lanes maximum_;
  Lanes weight_{};
  Lanes factor_{};
};

/// The inputs of the reference.
struct ReferenceProblem {
  Problem shape;
  Mask mask;
  const Inputs* inputs = nullptr;

  int mask_head(std::int64_t head_q) const {
    return static_cast<int>(list_of_head(head_q, mask.heads(), shape.heads_q));
  }
  /// Mean number of keys per row of a tile.
  double mean_keys(std::int64_t head_q, std::int64_t tile) const {
    const Range rows = {tile * kTile, std::min((tile + 1) * kTile, mask.q_tokens())};
    return static_cast<double>(mask.area_in(mask_head(head_q), rows, {0, mask.k_tokens()})) /
           static_cast<double>(rows.size());
  }
};

/// Statistics of the rows of one query tile and head, from the forward to the backward pass.
template <typename Real>
struct RowStatistics {
  std::array<Real, kTile> lse{};    ///< −∞ for a row without keys and sink
  std::array<Real, kTile> delta{};  ///< dO · O
  /// Of problems with sinks: the magnitude to which rounding errors of delta scale, those of O
  /// times a dO of random direction, ‖dO‖ / √dv · √max(‖O‖², Σ (P ‖v‖)²), or |delta| if that is
  /// larger.
  std::array<Real, kTile> delta_magnitude{};
};

/// Rounding errors scale with the magnitude of the terms that a result is a sum of and not with the
/// result, whose terms may cancel.
struct ForwardMagnitudes {
  /// max scale · ‖q‖ · ‖k‖ over the partner tiles; with a softcap plus that or the cap, whichever
  /// is smaller.
  double score = 0;
  TileTerms o;
  std::uint64_t seen = 0;  ///< bit i: row i of the tile has an allowed cell
};

/// Attention by tiles, written for clarity. With Real = double it is the reference itself. With
/// Real = float it emulates an honest kernel of the problem's dtype: float32 sums; P, dS and
/// results rounded to the dtype (P before the division by the row sum, as in blocked kernels).
/// Results are [kTile, dim of the tensor], zero past the last token. One object per thread.
template <typename Real>
class TilePasses {
 public:
  explicit TilePasses(const ReferenceProblem& problem);

  /// O and the row statistics of query tile `tile` of a query head.
  ForwardMagnitudes forward(std::int64_t head_q, std::int64_t tile, Real* o,
                            RowStatistics<Real>& rows);

  /// dQ of the same tile, given its row statistics. Returns its terms.
  TileTerms query_gradient(std::int64_t head_q, std::int64_t tile, const RowStatistics<Real>& rows,
                           Real* dq);

  struct KeyMagnitudes {
    TileTerms dk, dv;
    std::uint64_t seen = 0;  ///< bit i: key i of the tile has an allowed cell
  };
  /// dK and dV of key tile `tile` of a KV head, summed over the group's query heads and their query
  /// tiles, whose row statistics `rows_of(head_q, query tile)` returns.
  using RowsOf = std::function<RowStatistics<Real>(std::int64_t head_q, std::int64_t tile)>;
  KeyMagnitudes key_gradients(std::int64_t head_k, std::int64_t tile, const RowsOf& rows_of,
                              Real* dk, Real* dv);

 private:
  using Lanes = std::array<Real, kTile>;
  /// Per token of a tile, of dQ or dK: TileTerms without factors that its cells share.
  struct ScoreTerms {
    Lanes found{}, expected{}, uncapped{};
    double partner_squared = 0;  ///< the largest ‖k‖² of dQ's keys, ‖q‖² of dK's queries
  };
  /// Per key of a key tile: squares of the magnitudes of dk and dv.
  struct KeyTerms {
    ScoreTerms dk;
    Lanes dv{};
    std::uint64_t seen = 0;
  };

  OnlineSoftmax<Real> begin_softmax(std::int64_t head_q) const;
  void finish_forward(std::int64_t head_q, std::int64_t tile, const OnlineSoftmax<Real>& softmax,
                      Real* o, RowStatistics<Real>& rows);
  void note_delta_magnitudes(const Lanes& o_terms, const Real* o, RowStatistics<Real>& rows) const;
  void add_query_tile(const TileMask& seen_by, const TileMask::Partner& partner,
                      const RowStatistics<Real>& rows, KeyTerms& terms);
  TileTerms of_scores(const ScoreTerms& terms, const Lanes& others, double largest_score) const;
  double score_size(double owner_squared, double partner_squared) const;
  double capped_score(double score) const;
  void load_rows(const TensorView& tensor, std::int64_t head, std::int64_t tile, Real* out) const;
  void load_columns(const TensorView& tensor, std::int64_t head, std::int64_t tile,
                    Real* out) const;
  void compute_scores(const Real* partner, const Real* owner, const TileMask& mask,
                      const TileMask::Partner& which);
  void cap_scores();
  void round_results(Real* values, std::int64_t count) const;
  void store(const Real* columns, Real* rows, std::int64_t dim) const;
  HostBuffer reals(std::int64_t count) const {
    return HostBuffer(count * static_cast<std::int64_t>(sizeof(Real)));
  }

  const ReferenceProblem& problem_;
  Real scale_;
  Real softcap_;
  std::int64_t dim_;        ///< of q and k
  std::int64_t value_dim_;  ///< of v, o and dO
  std::int64_t row_;        ///< stride of a loaded row: dim_ zero-padded to a multiple of 4
  // The owner's tile, transposed: [row_, kTile]. Of values, zero from value_dim_ on.
  HostBuffer owner_a_, owner_b_;
  // The partner's tile: [kTile, row_], likewise.
  HostBuffer partner_a_, partner_b_;
  // S, then P; dP, then dS: [kTile of the partner, kTile of the owner].
  HostBuffer scores_, gradients_;
  // dS / d(scale · q · k) of the softcap, 1 without: likewise.
  HostBuffer slopes_;
  // Sums of the owner's results, transposed: [row_, kTile].
  HostBuffer sum_a_, sum_b_;
};

}  // namespace longca
