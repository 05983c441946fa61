#pragma once

#include "attention/reference/cuda/passes.h"
#include "attention/reference/cuda/tile_products.cuh"
#include "attention/reference/cuda/tile_sums.cuh"
#include "attention/reference/tile_mask.h"
#include "core/rounding.h"

namespace longca::reference {

/// Iterates over the intervals of one token; partner tiles must be visited in ascending order.
class IntervalCursor {
 public:
  /// `row` = head of the lists · tokens + token.
  __device__ void start(const DeviceIntervals& mask, std::int64_t row) {
    const std::int32_t list = mask.list_of[row];
    next_ = mask.intervals + mask.list_offsets[list];
    end_ = mask.intervals + mask.list_offsets[list + 1];
  }

  /// Bit p: partner token first + p is allowed. Drops intervals before `first`.
  __device__ std::uint64_t allowed(std::int64_t first) {
    std::uint64_t bits = 0;
    while (next_ < end_ && next_->end <= first) ++next_;
    for (const TokenInterval* i = next_; i < end_ && i->begin < first + kTile; ++i) {
      const std::int64_t begin = max(i->begin - first, std::int64_t{0});
      const std::int64_t end = min(i->end - first, kTile);
      bits |= ~std::uint64_t{0} >> (kTile - (end - begin)) << begin;
    }
    return bits;
  }

 private:
  const TokenInterval* next_ = nullptr;  ///< null for a token past the end
  const TokenInterval* end_ = nullptr;
};

/// One CTA: one tile of the owner's side against all its partners. With S = scale · Q Kᵀ, P =
/// exp(S − lse) and dS = P ∘ (dO Vᵀ − delta) · scale, `forward` accumulates P V, `query_gradient`
/// dS K, `value_gradient` Pᵀ dO and `key_gradient` dSᵀ Q.
template <ReferencePass kPass, typename Shape>
class TilePass {
 public:
  using T = typename Shape::Element;
  using Real = typename Shape::Exact;
  using Shared = SharedTiles<kPass, Shape>;

  __device__ TilePass(const PassArgs& args, Shared& shared)
      : a_(args),
        s_(shared),
        head_index_(static_cast<int>(blockIdx.y)),
        own_head_(args.heads[head_index_]),
        tiles_(ceil_div(own_tokens(), kTokens)) {
    const int first_query_head = kOwnsQueries ? own_head_ : own_head_ * a_.group;
    tile_ = a_.order[a_.mask_index[first_query_head] * a_.tiles + blockIdx.x];
    first_ = tile_ * kTokens;
  }

  __device__ void run() {
    load_tile<Shape>(own_tensor(), own_head_, first_, s_.own[0]);
    if constexpr (kGradient) {
      load_tile<Shape>(kOwnsQueries ? a_.dout : a_.v, own_head_, first_, s_.own[1]);
    }
    sums_.clear();
    if constexpr (kForward)
      a_.sink == nullptr ? softmax_.clear() : softmax_.begin_with(a_.sink[own_head_]);
    if constexpr (kPass == ReferencePass::query_gradient) load_own_rows();
    const int heads = kOwnsQueries ? 1 : a_.group;
    for (int i = 0; i < heads; ++i) {
      const int head_q = kOwnsQueries ? own_head_ : own_head_ * a_.group + i;
      loop_partners(head_q, kOwnsQueries ? head_q / a_.group : head_q);
    }
    finish();
  }

 private:
  static constexpr int kRows = Shape::kRows;
  static constexpr int kScores = Shape::kScores;
  static constexpr int kColumns = Shape::kColumns;
  static constexpr bool kForward = kPass == ReferencePass::forward;
  static constexpr bool kOwnsQueries = owns_queries(kPass);
  static constexpr bool kGradient = needs_gradient_of_p(kPass);
  static constexpr bool kTwice = Shape::kTwice;
  static constexpr int kSummed = kGradient ? 0 : 1;  ///< partner tensor of the second product
  static constexpr const T* kElement = nullptr;      ///< selects rounded()'s overload for T
  using Scores = Real[kRows][kScores];
  using SameScores = float[kRows][kScores];

  __device__ const ConstTensorView& own_tensor() const { return kOwnsQueries ? a_.q : a_.k; }
  __device__ std::int64_t own_tokens() const { return own_tensor().tokens; }
  __device__ bool capped() const { return a_.softcap > 0; }
  __device__ const float* first_squares() const {
    return kOwnsQueries ? a_.k_squared : a_.q_squared;
  }
  __device__ const float* summed_squares() const {
    if constexpr (kSummed == 0) return first_squares();
    return kOwnsQueries ? a_.v_squared : a_.dout_squared;
  }
  /// Replaces the lse −∞ of a row without keys: its scores are −∞, so P is 0 for any finite lse.
  static __device__ RowStatistic without_infinity(RowStatistic row) {
    if (row.lse == -INFINITY) row.lse = 0;
    if (row.same_lse == -INFINITY) row.same_lse = 0;
    return row;
  }

  __device__ void load_own_rows() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const std::int64_t token = first_ + Shape::row(i);
      RowStatistic row;
      if (token < own_tokens()) row = a_.rows[a_.query_index[own_head_] * own_tokens() + token];
      row = without_infinity(row);
      row_lse_[i] = static_cast<Real>(row.lse);
      row_delta_[i] = static_cast<Real>(row.delta);
      same_lse_[i] = row.same_lse;
      same_delta_[i] = row.same_delta;
    }
  }

  __device__ void loop_partners(int head_q, int partner_head) {
    const std::int64_t part = a_.mask_index[head_q];
    if (threadIdx.x < kTokens && first_ + threadIdx.x < own_tokens()) {
      cursor_.start(a_.mask, part * own_tokens() + first_ + threadIdx.x);
    }
    const std::int64_t* offsets = a_.mask.run_offsets + part * tiles_ + tile_;
    for (std::int64_t r = offsets[0]; r < offsets[1]; ++r) {
      const PartnerRun run = a_.mask.runs[r];
      for (int t = run.begin; t < run.end; ++t) {
        __syncthreads();  // all threads have read the previous partner
        load_partner(head_q, partner_head, t, run.full != 0);
        __syncthreads();
        process_partner();
      }
    }
  }

  __device__ void load_partner(int head_q, int head, int tile, bool full) {
    const std::int64_t first = std::int64_t{tile} * kTokens;
    const ConstTensorView& x = kOwnsQueries ? a_.k : a_.q;
    load_tile<Shape>(x, head, first, s_.partner[0]);
    load_tile<Shape>(kOwnsQueries ? a_.v : a_.dout, head, first, s_.partner[1]);
    if (threadIdx.x >= kTokens) return;
    const std::int64_t token = first + threadIdx.x;
    const bool exists = token < x.tokens;
    const float summed = exists ? summed_squares()[head * x.tokens + token] : 0;
    s_.summed_squared[threadIdx.x] = summed;
    if constexpr (kGradient) {
      const float* others = kOwnsQueries ? a_.v_squared : a_.dout_squared;
      s_.expected_squared[threadIdx.x] = exists ? summed * others[head * x.tokens + token] : 0;
    }
    const float squared = exists ? first_squares()[head * x.tokens + token] : 0;
    statistics_.largest_partner = max(statistics_.largest_partner, squared);
    if constexpr (!kOwnsQueries) {
      RowStatistic row;
      if (exists) row = a_.rows[a_.query_index[head_q] * x.tokens + token];
      s_.partner_rows[threadIdx.x] = without_infinity(row);
    }
    const std::uint64_t allowed = full ? ~std::uint64_t{0} : cursor_.allowed(first);
    s_.allowed[threadIdx.x] = allowed;
    statistics_.seen = statistics_.seen || allowed != 0;
  }

  __device__ void process_partner() {
    Scores p;
    SameScores same_p;
    row_products<Shape>(s_.own[0], s_.partner[0], p, same_p);
    if (capped()) cap(p, same_p);
    mask_and_scale(p, same_p);
    to_weights(p, same_p);
    if constexpr (kGradient) {
      to_score_gradients(p, same_p);
    } else {
      add_terms_and_round(p, same_p);
    }
    store_weights(p, same_p);
    __syncwarp();  // a row's weights are exchanged within the 16 lanes that share it
    add_products<Shape>(s_.weights, s_.same_weights, s_.partner[kSummed], sums_.exact, sums_.same);
  }

  /// Where store_weights will put the weight of cell (i, j), and the emulation's.
  __device__ Real& weight_at(int i, int j) const {
    return s_.weights[Shape::token(j) * Shape::kWeightStride + Shape::group() * kRows + i];
  }
  __device__ float& same_weight_at(int i, int j) const {
    return s_.same_weights[Shape::token(j) * Shape::kSameStride + Shape::group() * kRows + i];
  }

  /// Raw products to capped scores. Slopes 1 − tanh² wait where the cells' weights will be.
  __device__ void cap(Scores& s, SameScores& same_s) const {
    const auto softcap = static_cast<Real>(a_.softcap);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        const Real t = tangent(s[i][j] * static_cast<Real>(a_.scale) / softcap);
        s[i][j] = softcap * t;
        if constexpr (kGradient) weight_at(i, j) = (1 - t) * (1 + t);
        if constexpr (!kTwice) continue;
        const float same_t = tanhf(same_s[i][j] * a_.scale / a_.softcap);
        same_s[i][j] = a_.softcap * same_t;
        if constexpr (kGradient) same_weight_at(i, j) = (1 - same_t) * (1 + same_t);
      }
    }
  }

  __device__ void mask_and_scale(Scores& s, SameScores& same_s) const {
    const float factor = capped() ? 1 : a_.scale;
    const Real scale = static_cast<Real>(factor);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const std::uint64_t allowed = s_.allowed[Shape::row(i)];
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        const bool visible = allowed >> Shape::token(j) & 1;
        s[i][j] = visible ? s[i][j] * scale : static_cast<Real>(-INFINITY);
        if constexpr (kTwice) same_s[i][j] = visible ? same_s[i][j] * factor : -INFINITY;
      }
    }
  }

  __device__ void to_weights(Scores& p, SameScores& same_p) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if constexpr (kForward) {
        softmax_.advance(i, p[i], same_p[i], sums_);
      } else {
#pragma unroll
        for (int j = 0; j < kScores; ++j) {
          p[i][j] = exponential(p[i][j] - lse_of(i, j));
          if constexpr (kTwice) same_p[i][j] = expf(same_p[i][j] - same_lse_of(i, j));
        }
      }
    }
  }

  // The statistics of the query row of cell (i, j).
  __device__ Real lse_of(int i, int j) const {
    if constexpr (kOwnsQueries) return row_lse_[i];
    return static_cast<Real>(s_.partner_rows[Shape::token(j)].lse);
  }
  __device__ float same_lse_of(int i, int j) const {
    if constexpr (kOwnsQueries) return same_lse_[i];
    return s_.partner_rows[Shape::token(j)].same_lse;
  }
  __device__ Real delta_of(int i, int j) const {
    if constexpr (kOwnsQueries) return row_delta_[i];
    return static_cast<Real>(s_.partner_rows[Shape::token(j)].delta);
  }
  __device__ float same_delta_of(int i, int j) const {
    if constexpr (kOwnsQueries) return same_delta_[i];
    return s_.partner_rows[Shape::token(j)].same_delta;
  }

  __device__ void add_term(int i, int j, float weight) {
    sums_.terms[i] += s_.summed_squared[Shape::token(j)] * weight * weight;
  }

  __device__ void add_uncapped(int i, int j, float weight) {
    uncapped_[i] += s_.summed_squared[Shape::token(j)] * weight * weight;
  }

  /// same_p ← the emulation's rounded P if kTwice, else its rounding error.
  __device__ void add_terms_and_round(const Scores& p, SameScores& same_p) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        const auto x = static_cast<float>(p[i][j]);
        add_term(i, j, x);
        same_p[i][j] = kTwice ? rounded(same_p[i][j], kElement) : rounded(x, kElement) - x;
      }
    }
  }

  /// p ← dS = P · (dP − delta) · slope · scale; same_p ← the emulation's rounded dS if kTwice, else
  /// its error.
  __device__ void to_score_gradients(Scores& p, SameScores& same_p) {
    Scores dp;
    SameScores same_dp;
    row_products<Shape>(s_.own[1], s_.partner[1], dp, same_dp);
    const Real scale = static_cast<Real>(a_.scale);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        const Real delta = delta_of(i, j);
        float other_p = kTwice ? same_p[i][j] : static_cast<float>(p[i][j]);
        if (capped()) {
          add_uncapped(i, j, static_cast<float>(p[i][j] * (fabs(dp[i][j]) + fabs(delta))));
          const Real slope = weight_at(i, j);
          p[i][j] *= slope;
          other_p *= kTwice ? same_weight_at(i, j) : static_cast<float>(slope);
        }
        add_term(i, j, static_cast<float>(p[i][j] * (fabs(dp[i][j]) + fabs(delta))));
        const auto weight = static_cast<float>(p[i][j]);
        expected_[i] += s_.expected_squared[Shape::token(j)] * weight * weight;
        const float other_dp = kTwice ? same_dp[i][j] : static_cast<float>(dp[i][j]);
        p[i][j] *= (dp[i][j] - delta) * scale;
        const float ds = rounded(other_p * (other_dp - same_delta_of(i, j)) * a_.scale, kElement);
        same_p[i][j] = kTwice ? ds : ds - static_cast<float>(p[i][j]);
      }
    }
  }

  __device__ void store_weights(const Scores& p, const SameScores& same_p) {
#pragma unroll
    for (int j = 0; j < kScores; ++j) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        weight_at(i, j) = p[i][j];
        same_weight_at(i, j) = same_p[i][j];
      }
    }
  }

  /// This lane's part of the sums over a row of the output.
  struct RowSums {
    Real delta = 0;        ///< dO · O
    float same_delta = 0;  ///< the emulation's
    double squared = 0;    ///< ‖O‖²
  };

  /// Stores the output, the row statistics and the tile's statistics.
  __device__ void finish() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if constexpr (kForward) softmax_.divide(i, sums_);
      RowSums sums;
      if (first_ + Shape::row(i) < own_tokens()) store_row(i, sums);
      if constexpr (kForward) store_statistics(i, sums);
      add_terms_of_row(i);
    }
    TileStatistics total = reduce_statistics<Shape>(statistics_, s_.statistics);
    if (threadIdx.x != 0) return;
    const double score = score_magnitude(total.score);
    total.terms.score = score;
    total.terms.capped_score = min(score, static_cast<double>(a_.softcap));
    total.terms.softcap = kGradient ? static_cast<double>(a_.softcap) : 0;
    total.score = kForward ? score + total.terms.capped_score : 0;
    a_.statistics[head_index_ * tiles_ + tile_] = total;
  }

  /// The factor of TileTerms::expected that the cells of own row i share.
  __device__ double expected_of_own(int i) const {
    const std::int64_t token = first_ + Shape::row(i);
    if (token >= own_tokens()) return 0;
    const float* squares = kOwnsQueries ? a_.dout_squared : a_.v_squared;
    return static_cast<double>(squares[own_head_ * own_tokens() + token]) *
           static_cast<double>(a_.scale * a_.scale) / static_cast<double>(a_.v.dim);
  }

  __device__ void add_terms_of_row(int i) {
    double terms = static_cast<double>(sum_of_lanes(sums_.terms[i]));
    const double expected = kGradient ? static_cast<double>(sum_of_lanes(expected_[i])) : 0;
    double uncapped = kGradient ? static_cast<double>(sum_of_lanes(uncapped_[i])) : terms;
    if (Shape::lane() != 0) return;
    if constexpr (kGradient) terms *= static_cast<double>(a_.scale * a_.scale);
    if constexpr (kGradient) uncapped *= static_cast<double>(a_.scale * a_.scale);
    if (capped()) statistics_.uncapped += uncapped;
    statistics_.terms += terms;
    statistics_.row_terms_squared += terms * terms;
    if constexpr (kGradient) statistics_.expected += expected * expected_of_own(i);
  }

  __device__ void store_row(int i, RowSums& sums) {
    const std::int64_t token = first_ + Shape::row(i);
    const auto dim = static_cast<int>(kGradient ? own_tensor().dim : a_.v.dim);  // dq, dk; o, dv
    float* out = a_.out + (head_index_ * own_tokens() + token) * dim;
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      const int column = Shape::column(n);
      if (column >= dim) continue;
      const Real exact = sums_.exact[i][n];
      const float same = rounded(
          kTwice ? sums_.same[i][n] : static_cast<float>(exact) + sums_.same[i][n], kElement);
      const Real error = static_cast<Real>(same) - exact;
      statistics_.squared += static_cast<double>(exact) * static_cast<double>(exact);
      statistics_.error_squared += static_cast<double>(error) * static_cast<double>(error);
      statistics_.largest = max(statistics_.largest, fabsf(static_cast<float>(error)));
      out[column] = static_cast<float>(exact);
      if constexpr (kForward) {
        const auto dout = static_cast<float>(row_of<T>(a_.dout, token, own_head_)[column]);
        sums.delta += static_cast<Real>(dout) * exact;
        sums.same_delta += dout * same;
        sums.squared += static_cast<double>(exact) * static_cast<double>(exact);
      }
    }
  }

  __device__ void store_statistics(int i, const RowSums& sums) {
    const auto delta = static_cast<double>(sum_of_lanes(sums.delta));
    const float same_delta = sum_of_lanes(sums.same_delta);
    const double of_o =
        max(sum_of_lanes(sums.squared), static_cast<double>(sum_of_lanes(sums_.terms[i])));
    const std::int64_t token = first_ + Shape::row(i);
    if (Shape::lane() != 0 || token >= own_tokens()) return;
    const double of_dout = static_cast<double>(a_.dout_squared[own_head_ * own_tokens() + token]);
    a_.rows[a_.query_index[own_head_] * own_tokens() + token] = {
        softmax_.lse(i), delta, softmax_.same_lse(i), same_delta,
        delta_magnitude(delta, of_o, of_dout, a_.v.dim)};
  }

  __device__ double score_magnitude(double largest_partner) const {
    float largest_own = 0;
    for (std::int64_t t = first_; t < min(first_ + kTokens, own_tokens()); ++t) {
      const float* squares = kOwnsQueries ? a_.q_squared : a_.k_squared;
      largest_own = max(largest_own, squares[own_head_ * own_tokens() + t]);
    }
    return static_cast<double>(a_.scale) * sqrt(static_cast<double>(largest_own) * largest_partner);
  }

  const PassArgs& a_;
  Shared& s_;
  const int head_index_;
  const int own_head_;
  const std::int64_t tiles_;
  std::int64_t tile_ = 0;
  std::int64_t first_ = 0;  ///< first owned token
  IntervalCursor cursor_;   ///< of own token threadIdx.x, threads < 64
  ThreadStatistics statistics_;
  TileSums<Shape> sums_;
  RunningSoftmax<Shape> softmax_;           ///< forward
  Real row_lse_[kRows], row_delta_[kRows];  ///< query_gradient
  float same_lse_[kRows], same_delta_[kRows];
  float expected_[kRows] = {};  ///< gradients: TileTerms::expected of own rows
  float uncapped_[kRows] = {};  ///< likewise TileTerms::uncapped_squared
};

}  // namespace longca::reference
