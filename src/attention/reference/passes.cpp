#include "attention/reference/passes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "attention/reference/tile_math.h"
#include "core/rounding.h"

namespace longca {
namespace {

constexpr std::int64_t kCells = kTile * kTile;

template <typename Real>
constexpr Real kMinusInfinity = -std::numeric_limits<Real>::infinity();

template <typename T, typename Real>
void copy_row(const T* from, Real* to, std::int64_t count, std::int64_t stride) {
  for (std::int64_t c = 0; c < count; ++c) to[c * stride] = static_cast<Real>(float(from[c]));
}

/// Calls visit(index in the tile, row) for every token of the tile.
template <typename T, typename Visit>
void for_rows(const TensorView& tensor, std::int64_t head, std::int64_t tile, const Visit& visit) {
  const std::int64_t first = tile * kTile;
  for (std::int64_t i = 0; i < std::min(kTile, tensor.tokens - first); ++i) {
    visit(i, tensor.row<T>(first + i, head));
  }
}

/// ‖row‖² by eight partial sums, which vectorize.
template <typename Real>
double squared_norm(const Real* row, std::int64_t count) {
  std::array<Real, 8> sums{};
  std::int64_t c = 0;
  for (; c + 8 <= count; c += 8) {
    for (std::int64_t i = 0; i < 8; ++i) sums[i] += row[c + i] * row[c + i];
  }
  double sum = 0;
  for (; c < count; ++c) sum += static_cast<double>(row[c]) * static_cast<double>(row[c]);
  for (const Real partial : sums) sum += static_cast<double>(partial);
  return sum;
}

/// The largest ‖column‖² of [dim, kTile].
template <typename Real>
double largest_squared_column(const Real* columns, std::int64_t dim) {
  std::array<Real, kTile> sums{};
  for (std::int64_t c = 0; c < dim; ++c) {
    for (std::int64_t i = 0; i < kTile; ++i)
      sums[i] += columns[c * kTile + i] * columns[c * kTile + i];
  }
  return static_cast<double>(*std::ranges::max_element(sums));
}

/// Of terms without slopes.
void note_scores(TileTerms& terms, double score, double capped_score) {
  terms.score = score;
  terms.capped_score = capped_score;
  if (capped_score > 0) terms.uncapped_squared = terms.squared;
}

template <typename Real>
TileTerms terms_of(const std::array<Real, kTile>& squares) {
  TileTerms terms;
  for (const Real square : squares) terms.add_row(static_cast<double>(square));
  return terms;
}

/// ‖column‖² of columns [dim, kTile].
template <typename Real>
std::array<Real, kTile> squared_columns(const Real* columns, std::int64_t dim) {
  std::array<Real, kTile> squares{};
  for (std::int64_t c = 0; c < dim; ++c) {
    for (std::int64_t i = 0; i < kTile; ++i) {
      squares[i] += columns[c * kTile + i] * columns[c * kTile + i];
    }
  }
  return squares;
}

/// Bit i: token i of the owner sees a token of the partner.
std::uint64_t tokens_seeing(const TileMask& mask, const TileMask::Partner& partner) {
  std::uint64_t seen = 0;
  for (std::int64_t i = 0; i < kTile; ++i) {
    const bool sees = partner.bits < 0 || mask.bits[partner.bits][i] != 0;
    seen |= std::uint64_t{sees} << i;
  }
  return seen;
}

/// sums[i] += x · p[i]².
template <typename Real>
void add_squares(const Real* p, Real x, std::array<Real, kTile>& sums) {
  for (std::int64_t i = 0; i < kTile; ++i) sums[i] += x * p[i] * p[i];
}

}  // namespace

template <typename Real>
TilePasses<Real>::TilePasses(const ReferenceProblem& problem)
    : problem_(problem),
      scale_(static_cast<Real>(problem.shape.scale())),
      softcap_(static_cast<Real>(problem.shape.softcap)),
      dim_(problem.shape.head_dim),
      value_dim_(problem.shape.value_dim()),
      row_(round_up(dim_, 4)),
      owner_a_(reals(row_ * kTile)),
      owner_b_(reals(row_ * kTile)),
      partner_a_(reals(row_ * kTile)),
      partner_b_(reals(row_ * kTile)),
      scores_(reals(kCells)),
      gradients_(reals(kCells)),
      slopes_(reals(kCells)),
      sum_a_(reals(row_ * kTile)),
      sum_b_(reals(row_ * kTile)) {
  std::fill_n(slopes_.as<Real>(), kCells, Real(1));
}

template <typename Real>
void TilePasses<Real>::load_rows(const TensorView& tensor, std::int64_t head, std::int64_t tile,
                                 Real* out) const {
  std::fill_n(out, row_ * kTile, Real(0));
  with_type_of(tensor.dtype, [&]<typename T>(T) {
    for_rows<T>(tensor, head, tile,
                [&](std::int64_t i, const T* x) { copy_row(x, out + i * row_, tensor.dim, 1); });
  });
}

template <typename Real>
void TilePasses<Real>::load_columns(const TensorView& tensor, std::int64_t head, std::int64_t tile,
                                    Real* out) const {
  std::fill_n(out, row_ * kTile, Real(0));
  with_type_of(tensor.dtype, [&]<typename T>(T) {
    for_rows<T>(tensor, head, tile,
                [&](std::int64_t i, const T* x) { copy_row(x, out + i, tensor.dim, kTile); });
  });
}

/// scores[p, i] = scale · partner[p] · owner[i], capped, −∞ where the mask does not allow it.
template <typename Real>
void TilePasses<Real>::compute_scores(const Real* partner, const Real* owner, const TileMask& mask,
                                      const TileMask::Partner& which) {
  Real* s = scores_.as<Real>();
  std::fill_n(s, kCells, Real(0));
  tile_product(partner, row_, std::int64_t{1}, owner, s, kTile, dim_);
  for (std::int64_t i = 0; i < kCells; ++i) s[i] *= scale_;
  if (softcap_ > 0) cap_scores();
  if (which.bits < 0) return;
  const TileMask::Bits& allowed = mask.bits[which.bits];
  for (std::int64_t p = 0; p < kTile; ++p) {
    for (std::int64_t i = 0; i < kTile; ++i) {
      if ((allowed[i] >> p & 1) == 0) s[p * kTile + i] = kMinusInfinity<Real>;
    }
  }
}

/// scores = c · tanh(scores / c), slopes = 1 − tanh².
template <typename Real>
void TilePasses<Real>::cap_scores() {
  Real* s = scores_.as<Real>();
  Real* t = slopes_.as<Real>();
  for (std::int64_t i = 0; i < kCells; ++i) t[i] = s[i] / softcap_;
  tanh_in_place(t, kCells);
  for (std::int64_t i = 0; i < kCells; ++i) {
    s[i] = softcap_ * t[i];
    t[i] = (1 - t[i]) * (1 + t[i]);
  }
}

/// Rounds to the problem's dtype in the same-precision emulation.
template <typename Real>
void TilePasses<Real>::round_results(Real* values, std::int64_t count) const {
  if constexpr (std::is_same_v<Real, float>) {
    with_type_of(problem_.shape.dtype, [&]<typename T>(T) {
      for (std::int64_t i = 0; i < count; ++i) values[i] = float(T(values[i]));
    });
  }
}

/// Transposes sums [row_, kTile] into results [kTile, dim], rounded.
template <typename Real>
void TilePasses<Real>::store(const Real* columns, Real* rows, std::int64_t dim) const {
  for (std::int64_t i = 0; i < kTile; ++i) {
    for (std::int64_t c = 0; c < dim; ++c) rows[i * dim + c] = columns[c * kTile + i];
  }
  round_results(rows, kTile * dim);
}

template <typename Real>
ForwardMagnitudes TilePasses<Real>::forward(std::int64_t head_q, std::int64_t tile, Real* o,
                                            RowStatistics<Real>& rows) {
  const std::int64_t head_k = head_q / problem_.shape.group_size();
  Real* q = owner_a_.as<Real>();
  Real* k = partner_a_.as<Real>();
  Real* v = partner_b_.as<Real>();
  Real* p = scores_.as<Real>();
  Real* sum = sum_a_.as<Real>();
  std::fill_n(sum, row_ * kTile, Real(0));
  load_columns(problem_.inputs->q.view(), head_q, tile, q);
  OnlineSoftmax<Real> softmax = begin_softmax(head_q);
  Lanes terms{};  // Σ (P ‖v‖)², before the division by the sum of weights
  double largest_k = 0;
  ForwardMagnitudes magnitudes;

  const TileMask mask =
      TileMask::make(problem_.mask, problem_.mask_head(head_q), TileOwner::queries, tile);
  for (const TileMask::Partner& partner : mask.partners) {
    load_rows(problem_.inputs->k.view(), head_k, partner.tile, k);
    load_rows(problem_.inputs->v.view(), head_k, partner.tile, v);
    compute_scores(k, q, mask, partner);
    magnitudes.seen |= tokens_seeing(mask, partner);
    const auto& factor = softmax.advance(p);
    for (std::int64_t i = 0; i < kTile; ++i) terms[i] *= factor[i] * factor[i];
    for (std::int64_t j = 0; j < kTile; ++j) {
      largest_k = std::max(largest_k, squared_norm(k + j * row_, dim_));
      add_squares(p + j * kTile, static_cast<Real>(squared_norm(v + j * row_, value_dim_)), terms);
    }
    for (std::int64_t c = 0; c < value_dim_; ++c) {
      for (std::int64_t i = 0; i < kTile; ++i) sum[c * kTile + i] *= factor[i];
    }
    round_results(p, kCells);
    tile_product(v, std::int64_t{1}, row_, p, sum, row_, kTile);
  }
  finish_forward(head_q, tile, softmax, o, rows);
  for (std::int64_t i = 0; i < kTile; ++i) {
    const Real weight = softmax.weight(i);
    if (!(weight > 0)) continue;
    terms[i] /= weight * weight;
    magnitudes.o.add_row(static_cast<double>(terms[i]));
  }
  if (problem_.shape.sink) note_delta_magnitudes(terms, o, rows);
  const double score = score_size(largest_squared_column(q, dim_), largest_k);
  note_scores(magnitudes.o, score, capped_score(score));
  magnitudes.score = score + capped_score(score);
  return magnitudes;
}

/// scale · ‖q‖ · ‖k‖, which no score exceeds.
template <typename Real>
double TilePasses<Real>::score_size(double owner_squared, double partner_squared) const {
  return static_cast<double>(scale_) * std::sqrt(owner_squared * partner_squared);
}

/// No capped score exceeds it; 0 without a softcap.
template <typename Real>
double TilePasses<Real>::capped_score(double score) const {
  return std::min(score, static_cast<double>(softcap_));
}

template <typename Real>
OnlineSoftmax<Real> TilePasses<Real>::begin_softmax(std::int64_t head_q) const {
  if (!problem_.shape.sink) return {};
  return OnlineSoftmax<Real>(static_cast<Real>(problem_.inputs->sink_logits()[head_q]));
}

/// Divides O by the row sums, stores it, and fills the row statistics.
template <typename Real>
void TilePasses<Real>::finish_forward(std::int64_t head_q, std::int64_t tile,
                                      const OnlineSoftmax<Real>& softmax, Real* o,
                                      RowStatistics<Real>& rows) {
  Real* sum = sum_a_.as<Real>();
  for (std::int64_t i = 0; i < kTile; ++i) {
    const Real weight = softmax.weight(i);
    rows.lse[i] = weight > 0 ? softmax.lse(i) : kMinusInfinity<Real>;
    for (std::int64_t c = 0; c < value_dim_; ++c) {
      sum[c * kTile + i] = weight > 0 ? sum[c * kTile + i] / weight : Real(0);
    }
  }
  store(sum, o, value_dim_);
  Real* dout = partner_a_.as<Real>();
  load_rows(problem_.inputs->dout.view(), head_q, tile, dout);
  for (std::int64_t i = 0; i < kTile; ++i) {
    rows.delta[i] = 0;
    for (std::int64_t c = 0; c < value_dim_; ++c) {
      rows.delta[i] += dout[i * row_ + c] * o[i * value_dim_ + c];
    }
  }
}

/// After finish_forward, which leaves dO in partner_a_.
template <typename Real>
void TilePasses<Real>::note_delta_magnitudes(const Lanes& o_terms, const Real* o,
                                             RowStatistics<Real>& rows) const {
  const Real* dout = partner_a_.as<Real>();
  for (std::int64_t i = 0; i < kTile; ++i) {
    const double of_o =
        std::max(squared_norm(o + i * value_dim_, value_dim_), static_cast<double>(o_terms[i]));
    const double squared =
        squared_norm(dout + i * row_, value_dim_) * of_o / static_cast<double>(value_dim_);
    rows.delta_magnitude[i] =
        std::max(static_cast<Real>(std::sqrt(squared)), std::abs(rows.delta[i]));
  }
}

template <typename Real>
TileTerms TilePasses<Real>::query_gradient(std::int64_t head_q, std::int64_t tile,
                                           const RowStatistics<Real>& rows, Real* dq) {
  const std::int64_t head_k = head_q / problem_.shape.group_size();
  Real* q = owner_a_.as<Real>();
  Real* dout = owner_b_.as<Real>();
  Real* k = partner_a_.as<Real>();
  Real* v = partner_b_.as<Real>();
  Real* p = scores_.as<Real>();
  Real* ds = gradients_.as<Real>();
  const Real* slope = slopes_.as<Real>();
  Real* sum = sum_a_.as<Real>();
  std::fill_n(sum, row_ * kTile, Real(0));
  load_columns(problem_.inputs->q.view(), head_q, tile, q);
  load_columns(problem_.inputs->dout.view(), head_q, tile, dout);
  Lanes lse;
  std::ranges::transform(rows.lse, lse.begin(), finite_or_zero<Real>);
  ScoreTerms terms;

  const TileMask mask =
      TileMask::make(problem_.mask, problem_.mask_head(head_q), TileOwner::queries, tile);
  for (const TileMask::Partner& partner : mask.partners) {
    load_rows(problem_.inputs->k.view(), head_k, partner.tile, k);
    load_rows(problem_.inputs->v.view(), head_k, partner.tile, v);
    compute_scores(k, q, mask, partner);
    for (std::int64_t j = 0; j < kTile; ++j) {
      for (std::int64_t i = 0; i < kTile; ++i) p[j * kTile + i] -= lse[i];
    }
    exp_in_place(p, kCells);
    std::fill_n(ds, kCells, Real(0));
    tile_product(v, row_, std::int64_t{1}, dout, ds, kTile, value_dim_);  // dP
    for (std::int64_t j = 0; j < kTile; ++j) {
      const auto k_squared = static_cast<Real>(squared_norm(k + j * row_, dim_));
      terms.partner_squared = std::max(terms.partner_squared, static_cast<double>(k_squared));
      const auto v_squared = static_cast<Real>(squared_norm(v + j * row_, value_dim_));
      for (std::int64_t i = 0; i < kTile; ++i) {
        const std::int64_t cell = j * kTile + i;
        const Real uncapped = p[cell] * (std::abs(ds[cell]) + std::abs(rows.delta[i]));
        const Real term = uncapped * slope[cell];
        const Real weight = p[cell] * slope[cell];
        terms.found[i] += k_squared * term * term;
        terms.uncapped[i] += k_squared * uncapped * uncapped;
        terms.expected[i] += k_squared * v_squared * weight * weight;
        ds[cell] = weight * (ds[cell] - rows.delta[i]) * scale_;
      }
    }
    round_results(ds, kCells);
    tile_product(k, std::int64_t{1}, row_, ds, sum, row_, kTile);
  }
  store(sum, dq, dim_);
  const double score = score_size(largest_squared_column(q, dim_), terms.partner_squared);
  return of_scores(terms, squared_columns(dout, value_dim_), score);
}

/// The terms of dQ or dK, where `others` is ‖dO‖² of the rows or ‖v‖² of the keys.
template <typename Real>
TileTerms TilePasses<Real>::of_scores(const ScoreTerms& terms, const Lanes& others,
                                      double largest_score) const {
  const double scale_squared = static_cast<double>(scale_) * static_cast<double>(scale_);
  TileTerms sum;
  for (std::int64_t i = 0; i < kTile; ++i) {
    sum.add_row(scale_squared * static_cast<double>(terms.found[i]));
    sum.expected += scale_squared * static_cast<double>(terms.expected[i]) *
                    static_cast<double>(others[i]) / static_cast<double>(value_dim_);
    if (softcap_ > 0)
      sum.uncapped_squared += scale_squared * static_cast<double>(terms.uncapped[i]);
  }
  sum.score = largest_score;
  sum.capped_score = capped_score(largest_score);
  sum.softcap = problem_.shape.softcap;
  return sum;
}

template <typename Real>
typename TilePasses<Real>::KeyMagnitudes TilePasses<Real>::key_gradients(std::int64_t head_k,
                                                                         std::int64_t tile,
                                                                         const RowsOf& rows_of,
                                                                         Real* dk, Real* dv) {
  std::fill_n(sum_a_.as<Real>(), row_ * kTile, Real(0));
  std::fill_n(sum_b_.as<Real>(), row_ * kTile, Real(0));
  load_columns(problem_.inputs->k.view(), head_k, tile, owner_a_.as<Real>());
  load_columns(problem_.inputs->v.view(), head_k, tile, owner_b_.as<Real>());
  KeyTerms terms;
  const std::int64_t group = problem_.shape.group_size();
  int made_for = -1;  // query heads that share a mask head are adjacent
  TileMask mask;
  for (std::int64_t head_q = head_k * group; head_q < (head_k + 1) * group; ++head_q) {
    if (const int mask_head = problem_.mask_head(head_q); mask_head != made_for) {
      mask = TileMask::make(problem_.mask, mask_head, TileOwner::keys, tile);
      made_for = mask_head;
    }
    for (const TileMask::Partner& partner : mask.partners) {
      load_rows(problem_.inputs->q.view(), head_q, partner.tile, partner_a_.as<Real>());
      load_rows(problem_.inputs->dout.view(), head_q, partner.tile, partner_b_.as<Real>());
      add_query_tile(mask, partner, rows_of(head_q, partner.tile), terms);
    }
  }
  store(sum_a_.as<Real>(), dk, dim_);
  store(sum_b_.as<Real>(), dv, value_dim_);
  const double score =
      score_size(largest_squared_column(owner_a_.as<Real>(), dim_), terms.dk.partner_squared);
  TileTerms of_dv = terms_of(terms.dv);
  note_scores(of_dv, score, capped_score(score));
  return {of_scores(terms.dk, squared_columns(owner_b_.as<Real>(), value_dim_), score), of_dv,
          terms.seen};
}

/// Adds the contribution of the query tile in the partner buffers to the key tile in the owner
/// buffers.
template <typename Real>
void TilePasses<Real>::add_query_tile(const TileMask& mask, const TileMask::Partner& partner,
                                      const RowStatistics<Real>& rows, KeyTerms& terms) {
  Real* p = scores_.as<Real>();
  Real* ds = gradients_.as<Real>();
  const Real* slope = slopes_.as<Real>();
  const Real* q = partner_a_.as<Real>();
  const Real* dout = partner_b_.as<Real>();
  compute_scores(q, owner_a_.as<Real>(), mask, partner);
  for (std::int64_t j = 0; j < kTile; ++j) {
    const Real lse = finite_or_zero(rows.lse[j]);
    for (std::int64_t i = 0; i < kTile; ++i) p[j * kTile + i] -= lse;
  }
  exp_in_place(p, kCells);
  std::fill_n(ds, kCells, Real(0));
  tile_product(dout, row_, std::int64_t{1}, owner_b_.as<Real>(), ds, kTile, value_dim_);  // dP
  for (std::int64_t j = 0; j < kTile; ++j) {
    const Real delta = rows.delta[j];
    const auto q_squared = static_cast<Real>(squared_norm(q + j * row_, dim_));
    terms.dk.partner_squared = std::max(terms.dk.partner_squared, static_cast<double>(q_squared));
    const auto dout_squared = static_cast<Real>(squared_norm(dout + j * row_, value_dim_));
    for (std::int64_t i = 0; i < kTile; ++i) {
      const std::int64_t cell = j * kTile + i;
      const Real uncapped = p[cell] * (std::abs(ds[cell]) + std::abs(delta));
      const Real term = uncapped * slope[cell];
      const Real weight = p[cell] * slope[cell];
      terms.dk.found[i] += q_squared * term * term;
      terms.dk.uncapped[i] += q_squared * uncapped * uncapped;
      terms.dk.expected[i] += q_squared * dout_squared * weight * weight;
      terms.dv[i] += dout_squared * p[cell] * p[cell];
      ds[cell] = weight * (ds[cell] - delta) * scale_;
    }
  }
  terms.seen |= tokens_seeing(mask, partner);
  round_results(p, kCells);
  round_results(ds, kCells);
  tile_product(dout, std::int64_t{1}, row_, p, sum_b_.as<Real>(), row_, kTile);
  tile_product(q, std::int64_t{1}, row_, ds, sum_a_.as<Real>(), row_, kTile);
}

template class TilePasses<double>;
template class TilePasses<float>;

}  // namespace longca
