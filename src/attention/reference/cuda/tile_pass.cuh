#pragma once

#include <cmath>

#include "attention/reference/cuda/passes.h"
#include "attention/reference/cuda/tile_products.cuh"

namespace longca::reference {

constexpr bool owns_queries(ReferencePass pass) {
  return pass == ReferencePass::forward || pass == ReferencePass::query_gradient;
}
constexpr bool needs_gradient_of_p(ReferencePass pass) {
  return pass == ReferencePass::query_gradient || pass == ReferencePass::key_gradient;
}

inline __device__ float exponential(float x) {
  return expf(x);
}
inline __device__ double exponential(double x) {
  return exp(x);
}

template <typename T>
__device__ T sum_of_lanes(T x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0U, x, step);
  return x;
}
template <typename T>
__device__ T largest_of_lanes(T x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = max(x, __shfl_xor_sync(~0U, x, step));
  return x;
}

/// What a block keeps in shared memory.
template <ReferencePass kPass, typename Shape>
struct SharedTiles {
  using T = typename Shape::Element;
  using Real = typename Shape::Exact;
  static constexpr int kOwnTiles = needs_gradient_of_p(kPass) ? 2 : 1;

  alignas(16) T own[kOwnTiles][Shape::kTileElements];
  alignas(16) T partner[2][Shape::kTileElements];
  alignas(16) Real weights[kTokens * Shape::kWeightStride];
  alignas(16) float same_weights[kTokens * Shape::kSameStride];
  std::uint64_t allowed[kTokens];  ///< bit p of own token i
  RowStatistic partner_rows[kTokens];
  float first_squared[kTokens];  ///< ‖row‖² of the partner's first tensor, for score magnitudes
  float summed_squared[kTokens];  ///< of the partner's tensor that is summed
  double sums[3][Shape::kThreads / 32];
  std::uint64_t seen[2];
  float largest_score[2];
};

/// One block: one tile of the owner's side against all its partners.
template <ReferencePass kPass, typename Shape>
class TilePass {
 public:
  using T = typename Shape::Element;
  using Real = typename Shape::Exact;
  using Shared = SharedTiles<kPass, Shape>;
  static constexpr int kRows = Shape::kRows;
  static constexpr int kScores = Shape::kScores;
  static constexpr int kColumns = Shape::kColumns;
  static constexpr bool kForward = kPass == ReferencePass::forward;
  static constexpr bool kOwnsQueries = owns_queries(kPass);
  static constexpr bool kGradient = needs_gradient_of_p(kPass);
  /// The emulation's scores are its own: where the reference's arithmetic is that of an honest
  /// kernel, both share them, and the emulation's sums hold its error alone.
  static constexpr bool kTwice = sizeof(Real) > sizeof(float);
  static constexpr int kWords = kTokens / 32;

  __device__ TilePass(const PassArgs& args, Shared& shared)
      : a_(args),
        s_(shared),
        slot_(static_cast<int>(blockIdx.y)),
        own_head_(args.heads[slot_]),
        tiles_((own_tokens() + kTokens - 1) / kTokens) {
    const int first_query_head = kOwnsQueries ? own_head_ : own_head_ * a_.group;
    tile_ = a_.mask.order[a_.mask_slot[first_query_head] * tiles_ + blockIdx.x];
    first_ = tile_ * kTokens;
  }

  __device__ void run() {
    load_tile<Shape>(kOwnsQueries ? a_.q : a_.k, own_head_, first_, s_.own[0]);
    if constexpr (kGradient) {
      load_tile<Shape>(kOwnsQueries ? a_.dout : a_.v, own_head_, first_, s_.own[1]);
    }
    load_own_rows();
    const int heads = kOwnsQueries ? 1 : a_.group;
    for (int i = 0; i < heads; ++i) {
      const int head_q = kOwnsQueries ? own_head_ : own_head_ * a_.group + i;
      meet_partners(head_q, kOwnsQueries ? head_q / a_.group : head_q);
    }
    finish();
  }

 private:
  __device__ const ConstTensorView& own_tensor() const { return kOwnsQueries ? a_.q : a_.k; }
  __device__ std::int64_t own_tokens() const { return own_tensor().tokens; }
  __device__ const ConstTensorView& first_partner() const { return kOwnsQueries ? a_.k : a_.q; }
  __device__ const ConstTensorView& second_partner() const { return kOwnsQueries ? a_.v : a_.dout; }
  /// The partner's tensor that the weights multiply: V, K, dO, Q.
  static constexpr int kSummed = kGradient ? 0 : 1;
  __device__ const float* first_squares() const {
    return kOwnsQueries ? a_.k_squared : a_.q_squared;
  }
  __device__ const float* summed_squares() const {
    if constexpr (kSummed == 0) return first_squares();
    return kOwnsQueries ? a_.v_squared : a_.dout_squared;
  }

  __device__ void load_own_rows() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      row_lse_[i] = 0, row_delta_[i] = 0, same_lse_[i] = 0, same_delta_[i] = 0;
      weight_[i] = 0, same_weight_[i] = 0, terms_[i] = 0;
      maximum_[i] = -INFINITY;
#pragma unroll
      for (int n = 0; n < kColumns; ++n) sum_[i][n] = 0, same_[i][n] = 0;
      if constexpr (kPass == ReferencePass::query_gradient) {
        const std::int64_t token = first_ + Shape::row(i);
        if (token >= own_tokens()) continue;
        const RowStatistic& row = a_.rows[a_.query_slot[own_head_] * own_tokens() + token];
        row_lse_[i] = static_cast<Real>(row.lse == -INFINITY ? 0 : row.lse);
        row_delta_[i] = static_cast<Real>(row.delta);
        same_lse_[i] = row.same_lse == -INFINITY ? 0 : row.same_lse;
        same_delta_[i] = row.same_delta;
      }
    }
  }

  __device__ void meet_partners(int head_q, int partner_head) {
    const std::int64_t part = a_.mask_slot[head_q];
    if (threadIdx.x < kTokens && first_ + threadIdx.x < own_tokens()) {
      const std::int32_t list = a_.mask.list_of[part * own_tokens() + first_ + threadIdx.x];
      next_ = a_.mask.list_offsets[list];
      end_ = a_.mask.list_offsets[list + 1];
    }
    const std::int64_t* offsets = a_.mask.run_offsets + part * tiles_ + tile_;
    for (std::int64_t r = offsets[0]; r < offsets[1]; ++r) {
      const PartnerRun run = a_.mask.runs[r];
      for (int t = run.begin; t < run.end; ++t) {
        __syncthreads();
        load_partner(head_q, partner_head, t, run.full != 0);
        __syncthreads();
        meet(run.full != 0);
      }
    }
  }

  __device__ void load_partner(int head_q, int head, int tile, bool full) {
    const std::int64_t first = std::int64_t{tile} * kTokens;
    load_tile<Shape>(first_partner(), head, first, s_.partner[0]);
    load_tile<Shape>(second_partner(), head, first, s_.partner[1]);
    if (threadIdx.x >= kTokens) return;
    const std::int64_t tokens = first_partner().tokens;
    const std::int64_t token = first + threadIdx.x;
    const bool exists = token < tokens;
    const float squared = exists ? first_squares()[head * tokens + token] : 0;
    s_.first_squared[threadIdx.x] = squared;
    s_.summed_squared[threadIdx.x] = exists ? summed_squares()[head * tokens + token] : 0;
    if constexpr (kForward) largest_partner_ = max(largest_partner_, squared);
    if constexpr (!kOwnsQueries) {
      RowStatistic row;
      if (exists) row = a_.rows[a_.query_slot[head_q] * tokens + token];
      if (row.lse == -INFINITY) row.lse = 0;
      if (row.same_lse == -INFINITY) row.same_lse = 0;
      s_.partner_rows[threadIdx.x] = row;
    }
    const std::uint64_t allowed = full ? ~std::uint64_t{0} : allowed_partners(first);
    s_.allowed[threadIdx.x] = allowed;
    seen_ = seen_ || allowed != 0;
  }

  /// Of this thread's own token: which of the 64 partners from `first` on it sees. Partners come in
  /// ascending order, so that intervals behind are done with.
  __device__ std::uint64_t allowed_partners(std::int64_t first) {
    std::uint64_t bits = 0;
    while (next_ < end_ && a_.mask.intervals[next_].end <= first) ++next_;
    for (std::int64_t i = next_; i < end_; ++i) {
      const TokenInterval interval = a_.mask.intervals[i];
      if (interval.begin >= first + kTokens) break;
      const std::int64_t begin = max(std::int64_t{interval.begin} - first, std::int64_t{0});
      const std::int64_t end = min(interval.end - first, std::int64_t{kTokens});
      bits |= ~std::uint64_t{0} >> (kTokens - (end - begin)) << begin;
    }
    return bits;
  }

  __device__ void meet(bool full) {
    Real p[kRows][kScores];
    float same_p[kRows][kScores];
    row_products<Shape>(s_.own[0], s_.partner[0], p, same_p);
    const Real scale = static_cast<Real>(a_.scale);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const std::uint64_t allowed = full ? ~std::uint64_t{0} : s_.allowed[Shape::row(i)];
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        const bool sees = allowed >> Shape::token(j) & 1;
        p[i][j] = sees ? p[i][j] * scale : static_cast<Real>(-INFINITY);
        if constexpr (kTwice) same_p[i][j] = sees ? same_p[i][j] * a_.scale : -INFINITY;
      }
    }
    if constexpr (kForward) {
      advance_softmax(p, same_p);
    } else {
      weigh_by_lse(p, same_p);
    }
    if constexpr (kGradient) to_score_gradients(p, same_p);
    if constexpr (!kGradient) round_weights(p, same_p);
    store_weights(p, same_p);
    __syncwarp();  // weights are read by the 16 lanes that wrote them
    add_products<Shape>(s_.weights, s_.same_weights, s_.partner[kSummed], sum_, same_);
  }

  /// Scores to weights relative to the largest score so far, as OnlineSoftmax.
  __device__ void advance_softmax(Real (&p)[kRows][kScores], float (&same_p)[kRows][kScores]) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      Real largest = maximum_[i];
#pragma unroll
      for (int j = 0; j < kScores; ++j) largest = max(largest, p[i][j]);
      largest = largest_of_lanes(largest);
      const Real shift = largest == static_cast<Real>(-INFINITY) ? Real(0) : largest;
      if (largest != maximum_[i]) rescale(i, exponential(maximum_[i] - shift));
      maximum_[i] = largest;
      double weight = 0;
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        p[i][j] = exponential(p[i][j] - shift);
        weight += static_cast<double>(p[i][j]);
        if constexpr (kTwice) {
          same_p[i][j] = expf(same_p[i][j] - static_cast<float>(shift));
          same_weight_[i] += same_p[i][j];
        }
        add_terms(i, j, static_cast<float>(p[i][j]));
      }
      weight_[i] += weight;
    }
  }
  __device__ void rescale(int i, Real factor) {
    weight_[i] *= static_cast<double>(factor);
    same_weight_[i] *= static_cast<float>(factor);
    terms_[i] *= static_cast<float>(factor * factor);
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      sum_[i][n] *= factor;
      same_[i][n] *= static_cast<float>(factor);
    }
  }

  /// The statistics of the query row of cell (i, j).
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

  __device__ void weigh_by_lse(Real (&p)[kRows][kScores], float (&same_p)[kRows][kScores]) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        p[i][j] = exponential(p[i][j] - lse_of(i, j));
        if constexpr (kTwice) same_p[i][j] = expf(same_p[i][j] - same_lse_of(i, j));
        if constexpr (!kGradient) add_terms(i, j, static_cast<float>(p[i][j]));
      }
    }
  }

  __device__ void add_terms(int i, int j, float weight) {
    terms_[i] += s_.summed_squared[Shape::token(j)] * weight * weight;
  }

  /// p ← P · (dP − delta) · scale; same_p ← the emulation's, or its error.
  __device__ void to_score_gradients(Real (&p)[kRows][kScores], float (&same_p)[kRows][kScores]) {
    Real dp[kRows][kScores];
    float same_dp[kRows][kScores];
    row_products<Shape>(s_.own[1], s_.partner[1], dp, same_dp);
    const Real scale = static_cast<Real>(a_.scale);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        const Real delta = delta_of(i, j);
        add_terms(i, j, static_cast<float>(p[i][j] * (fabs(dp[i][j]) + fabs(delta))));
        const float other_p = kTwice ? same_p[i][j] : static_cast<float>(p[i][j]);
        const float other_dp = kTwice ? same_dp[i][j] : static_cast<float>(dp[i][j]);
        p[i][j] *= (dp[i][j] - delta) * scale;
        const float ds = rounded(other_p * (other_dp - same_delta_of(i, j)) * a_.scale, kElement);
        same_p[i][j] = kTwice ? ds : ds - static_cast<float>(p[i][j]);
      }
    }
  }

  __device__ void round_weights(Real (&p)[kRows][kScores], float (&same_p)[kRows][kScores]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        const auto x = static_cast<float>(p[i][j]);
        same_p[i][j] = kTwice ? rounded(same_p[i][j], kElement) : rounded(x, kElement) - x;
      }
    }
  }

  __device__ void store_weights(const Real (&p)[kRows][kScores],
                                const float (&same_p)[kRows][kScores]) {
#pragma unroll
    for (int j = 0; j < kScores; ++j) {
      Real* w = s_.weights + Shape::token(j) * Shape::kWeightStride + Shape::group() * kRows;
      float* e = s_.same_weights + Shape::token(j) * Shape::kSameStride + Shape::group() * kRows;
#pragma unroll
      for (int i = 0; i < kRows; ++i) w[i] = p[i][j], e[i] = same_p[i][j];
    }
  }

  /// Divides by the sum of weights, stores the result and what the tile's bound needs.
  __device__ void finish() {
    double squared = 0, error_squared = 0, terms = 0;
    float largest = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if constexpr (kForward) divide_row(i);
      Real delta = 0;
      float same_delta = 0;
      finish_row(i, squared, error_squared, largest, delta, same_delta);
      if constexpr (kForward) store_statistics(i, delta, same_delta);
      terms += static_cast<double>(terms_[i]);
    }
    if constexpr (kGradient) terms *= static_cast<double>(a_.scale) * static_cast<double>(a_.scale);
    store_figure(squared, error_squared, terms, largest);
  }

  __device__ void divide_row(int i) {
    weight_[i] = sum_of_lanes(weight_[i]);
    same_weight_[i] = kTwice ? sum_of_lanes(same_weight_[i]) : static_cast<float>(weight_[i]);
    const bool any = weight_[i] > 0;
    const Real factor = any ? static_cast<Real>(1 / weight_[i]) : Real(0);
    const float same_factor = any ? 1 / same_weight_[i] : 0;
    terms_[i] *= static_cast<float>(factor * factor);
#pragma unroll
    for (int n = 0; n < kColumns; ++n) sum_[i][n] *= factor, same_[i][n] *= same_factor;
  }

  __device__ void finish_row(int i, double& squared, double& error_squared, float& largest,
                             Real& delta, float& same_delta) {
    const std::int64_t token = first_ + Shape::row(i);
    if (token >= own_tokens()) return;
    const auto dim = static_cast<int>(own_tensor().dim);
    float* out = a_.out + (slot_ * own_tokens() + token) * dim;
    const T* dout = kForward ? row_of<T>(a_.dout, token, own_head_) : nullptr;
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      const int column = Shape::column(n);
      if (column >= dim) continue;
      const Real exact = sum_[i][n];
      const float same =
          rounded(kTwice ? same_[i][n] : static_cast<float>(exact) + same_[i][n], kElement);
      const Real error = static_cast<Real>(same) - exact;
      squared += static_cast<double>(exact) * static_cast<double>(exact);
      error_squared += static_cast<double>(error) * static_cast<double>(error);
      largest = max(largest, fabsf(static_cast<float>(error)));
      out[column] = static_cast<float>(exact);
      if constexpr (kForward) {
        const float gradient = static_cast<float>(dout[column]);
        delta += static_cast<Real>(gradient) * exact;
        same_delta += gradient * same;
      }
    }
  }

  __device__ void store_statistics(int i, Real delta, float same_delta) {
    delta = sum_of_lanes(delta);
    same_delta = sum_of_lanes(same_delta);
    const std::int64_t token = first_ + Shape::row(i);
    if (Shape::lane() != 0 || token >= own_tokens()) return;
    RowStatistic row;
    const double shift = static_cast<double>(maximum_[i]);
    row.lse = weight_[i] > 0 ? shift + log(weight_[i]) : -INFINITY;
    row.same_lse =
        kTwice ? static_cast<float>(shift) + logf(same_weight_[i]) : static_cast<float>(row.lse);
    row.delta = static_cast<double>(delta);
    row.same_delta = same_delta;
    a_.rows[a_.query_slot[own_head_] * own_tokens() + token] = row;
  }

  __device__ void store_figure(double squared, double error_squared, double terms, float largest) {
    __syncthreads();
    if (threadIdx.x == 0) s_.largest_score[0] = 0, s_.largest_score[1] = 0;
    __syncthreads();
    double sums[3] = {squared, error_squared, terms};
    for (int i = 0; i < 3; ++i) {
      for (int step = 16; step > 0; step /= 2) sums[i] += __shfl_xor_sync(~0U, sums[i], step);
      if (threadIdx.x % 32 == 0) s_.sums[i][threadIdx.x / 32] = sums[i];
    }
    // Figures that are not negative compare as their bits.
    atomicMax(reinterpret_cast<int*>(&s_.largest_score[0]), __float_as_int(largest));
    if (threadIdx.x < kTokens) {
      atomicMax(reinterpret_cast<int*>(&s_.largest_score[1]), __float_as_int(largest_partner_));
      const unsigned seen = __ballot_sync(~0U, seen_);
      if (threadIdx.x % 32 == 0) s_.seen[threadIdx.x / 32] = seen;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    TileFigure figure;
    for (int w = 0; w < Shape::kThreads / 32; ++w) {
      figure.squared += s_.sums[0][w];
      figure.error_squared += s_.sums[1][w];
      figure.terms += s_.sums[2][w];
    }
    figure.largest = static_cast<double>(s_.largest_score[0]);
    figure.seen = s_.seen[0] | s_.seen[1] << 32;
    if constexpr (kForward) figure.score = score_magnitude(s_.largest_score[1]);
    a_.figures[slot_ * tiles_ + tile_] = figure;
  }

  __device__ double score_magnitude(float largest_partner) const {
    float largest_own = 0;
    for (std::int64_t t = first_; t < min(first_ + kTokens, own_tokens()); ++t) {
      largest_own = max(largest_own, a_.q_squared[own_head_ * own_tokens() + t]);
    }
    return static_cast<double>(a_.scale) *
           sqrt(static_cast<double>(largest_own) * static_cast<double>(largest_partner));
  }

  static constexpr const T* kElement = nullptr;

  const PassArgs& a_;
  Shared& s_;
  const int slot_;
  const int own_head_;
  const std::int64_t tiles_;
  std::int64_t tile_ = 0;
  std::int64_t first_ = 0;  ///< own token
  // Of this thread's own token, for threads below 64: its intervals to come, whether it sees any.
  std::int64_t next_ = 0, end_ = 0;
  bool seen_ = false;
  float largest_partner_ = 0;
  // Of this thread's rows.
  Real row_lse_[kRows], row_delta_[kRows], maximum_[kRows];
  float same_lse_[kRows], same_delta_[kRows], same_weight_[kRows], terms_[kRows];
  double weight_[kRows];
  Real sum_[kRows][kColumns];
  float same_[kRows][kColumns];
};

}  // namespace longca::reference
