#include "advise/interpolator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "advise/evidence.h"
#include "advise/least_squares.h"
#include "bench/suite/axes.h"

namespace longca::advise {
namespace {

/// How much a cell counts in a fit falls by e over so many octaves of length.
constexpr double kFitOctaves = 2.0;
/// Neighbours of which the ratios are interpolated.
constexpr std::size_t kNeighbours = 16;
/// The covariance of the logarithms of two cells' ratios, 1 for the same cell: it decays with the
/// distance of the lengths, in octaves, and is smaller between heads and masks. That between heads
/// was measured: the correlation of the ratios of problems with 8 and with 64 KV heads
/// (docs/design/advise.md).
constexpr double kOctaves = 6.0;
constexpr double kHeadsCovariance = 0.55;
constexpr double kAnyMask = 0.4;
constexpr double kOtherForm = 0.5;
constexpr double kSameMask = 0.4;
constexpr double kSameParameters = 0.2;
/// The variance of a measurement itself.
constexpr double kNugget = 0.002;

const TileCount& tiles_of(const Work& work, TileGrid grid) {
  const bool of_slices = grid == TileGrid::documents && work.form == MaskForm::documents;
  return of_slices ? work.slice_tiles : work.tiles;
}

/// What each kind of work costs adds up to the quantity. Of terms that grow alike in all cells, as
/// rows and keys do where all have the same heads, the first one is taken to be the cause.
std::vector<double> terms_of(const Work& work, TileGrid grid) {
  const TileCount& tiles = tiles_of(work, grid);
  const IdleSlots& idle = work.idle;
  return {1.0,
          work.planned_ms,
          tiles.full,
          tiles.partial,
          work.tested_tiles,
          work.cells,
          work.rows,
          work.keys,
          work.square_tiles,
          idle.tile_rows,
          idle.tile_columns,
          idle.grouped_columns,
          idle.slices,
          idle.group_gradients};
}

/// What is left to fit of a call whose time is known by its lists (Work::planned_ms): these count
/// queries and tiles, and no traffic of K, V, dK and dV.
Work beside_lists(const Work& work) {
  Work left;
  left.planned_ms = work.planned_ms;
  left.keys = work.keys;
  return left;
}

std::vector<double> terms_of(const Work& work, TileGrid grid, Quantity quantity) {
  if (quantity == Quantity::memory) return terms_of(work, grid);
  const bool by_lists = work.planned_ms > 0;  // in which the constant and the slowdown are
  std::vector<double> terms = terms_of(by_lists ? beside_lists(work) : work, grid);
  if (by_lists) terms.front() = 0;
  const TileCount& tiles = tiles_of(work, grid);
  terms.push_back(by_lists ? 0 : work.slowed * (tiles.full + tiles.partial));
  terms.push_back(work.empty_tile_rows);
  return terms;
}

/// What is in the quantity as it is.
double known_of(const Work& work, Quantity quantity) {
  return quantity == Quantity::memory ? work.known_bytes : work.known_ms;
}

/// A call without work takes about this long. Cells say little of it: what grows with the rows
/// looks alike at the lengths that are measured, and would be missed at shorter ones.
constexpr double kEmptyCallMs = 0.01;
/// How much that counts, as a share of all cells.
constexpr double kEmptyCallWeight = 0.01;

void add_empty_call(std::vector<FitRow>& rows) {
  FitRow empty{std::vector<double>(rows.front().terms.size(), 0.0), kEmptyCallMs, 0};
  empty.terms.front() = 1;  // the constant
  for (const FitRow& row : rows) empty.weight += kEmptyCallWeight * row.weight;
  rows.push_back(std::move(empty));
}

/// The places of the `count` largest values, or of all.
std::vector<std::size_t> largest(const std::vector<double>& values, std::size_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::ranges::partial_sort(order, end, std::ranges::greater{},
                            [&](std::size_t i) { return values[i]; });
  order.erase(end, order.end());
  return order;
}

}  // namespace

Place place_of(const Case& c, const Work& work, double value) {
  const Case timed = without_idle_seed(c);
  Place place{.tokens = c.tokens, .mask = c.mask, .parameters = c.mask};
  for (const Axis& axis : axis_table()) {
    if (axis.applies == nullptr && axis.name != "seed") continue;
    if (const auto text = axis.text(timed)) place.parameters += " " + axis.name + "=" + *text;
  }
  place.heads_q = c.heads_q;
  place.heads_k = c.heads_k;
  place.log_tokens = std::log2(static_cast<double>(std::max<std::int64_t>(c.tokens, 1)));
  place.log_density = std::log(std::max(work.density(), 1e-9));
  place.work = work;
  place.value = value;
  return place;
}

bool same_heads(const Place& a, const Place& b) {
  return a.heads_q == b.heads_q && a.heads_k == b.heads_k;
}

double covariance(const Place& a, const Place& b) {
  const double near = std::exp(-std::abs(a.log_density - b.log_density));
  double mask =
      kAnyMask * near * std::exp(-std::abs(a.work.partial_share() - b.work.partial_share()));
  if (a.work.form != b.work.form) mask *= kOtherForm;
  if (a.mask == b.mask) mask += kSameMask * near;
  if (a.parameters == b.parameters) mask += kSameParameters;
  const double lengths = std::exp(-std::abs(a.log_tokens - b.log_tokens) / kOctaves);
  return mask * lengths * (same_heads(a, b) ? 1.0 : kHeadsCovariance);
}

Places::Places(std::vector<Place> places, Quantity quantity)
    : places_(std::move(places)), quantity_(quantity) {
  const std::size_t n = places_.size();
  covariances_.resize(n * n);
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      covariances_[a * n + b] = covariances_[b * n + a] = covariance(places_[a], places_[b]);
    }
  }
}

std::vector<double> Places::covariances_with(const Place& target) const {
  std::vector<double> values;
  values.reserve(places_.size());
  for (const Place& place : places_) values.push_back(covariance(place, target));
  return values;
}

double Interpolator::Fit::fitted(const Work& work) const {
  const std::vector<double> terms = terms_of(work, grid, quantity);
  double sum = known_of(work, quantity);
  for (std::size_t i = 0; i < terms.size(); ++i) sum += coefficients[i] * terms[i];
  return std::max(sum, 1e-12);
}

double Interpolator::Fit::error() const {
  double sum = 0;
  for (const double ratio : ratios) sum += std::abs(ratio);
  return sum / static_cast<double>(ratios.size());
}

Interpolator::Interpolator(const Places& places, std::vector<std::size_t> chosen,
                           std::optional<TileGrid> grid)
    : places_(&places), chosen_(std::move(chosen)), grid_(grid.value_or(TileGrid::matrix)) {
  if (grid) return;
  const auto error_of = [&](TileGrid of) { return fit(of, std::nullopt).error(); };
  if (error_of(TileGrid::documents) < error_of(TileGrid::matrix)) grid_ = TileGrid::documents;
}

Interpolator::Fit Interpolator::fit(TileGrid grid, std::optional<double> log_tokens) const {
  std::vector<FitRow> rows;
  rows.reserve(chosen_.size());
  for (const std::size_t i : chosen_) {
    const Place& place = places_->all()[i];
    const double distance = log_tokens ? std::abs(place.log_tokens - *log_tokens) : 0;
    rows.push_back({terms_of(place.work, grid, places_->quantity()), place.value,
                    std::exp(-distance / kFitOctaves), known_of(place.work, places_->quantity())});
  }
  if (places_->quantity() == Quantity::time) add_empty_call(rows);
  Fit made{places_->quantity(), grid, fit_non_negative(rows)};
  for (const std::size_t i : chosen_) {
    const Place& place = places_->all()[i];
    made.ratios.push_back(std::log(place.value / made.fitted(place.work)));
  }
  return made;
}

const Interpolator::Fit& Interpolator::fit_around(double log_tokens) const {
  const auto found = fits_.find(log_tokens);
  if (found != fits_.end()) return found->second;
  return fits_.emplace(log_tokens, fit(grid_, log_tokens)).first->second;
}

Interpolator::Estimate Interpolator::estimate(const Place& target) const {
  const std::vector<double> all = places_->covariances_with(target);
  std::vector<double> covariances;
  covariances.reserve(chosen_.size());
  for (const std::size_t i : chosen_) covariances.push_back(all[i]);
  return interpolate(target, covariances);
}

Interpolator::Estimate Interpolator::estimate(std::size_t target) const {
  std::vector<double> covariances;
  covariances.reserve(chosen_.size());
  for (const std::size_t i : chosen_) covariances.push_back(places_->covariance_of(i, target));
  return interpolate(places_->all()[target], covariances);
}

Interpolator::Estimate Interpolator::interpolate(const Place& target,
                                                 const std::vector<double>& covariances) const {
  const std::vector<std::size_t> near = largest(covariances, kNeighbours);
  const std::size_t n = near.size();
  std::vector<double> matrix(n * n), right(n);
  for (std::size_t i = 0; i < n; ++i) {
    right[i] = covariances[near[i]];
    for (std::size_t j = 0; j < n; ++j) {
      matrix[i * n + j] = places_->covariance_of(chosen_[near[i]], chosen_[near[j]]);
    }
    matrix[i * n + i] += kNugget;
  }
  const std::vector<double> weights = solve_positive_definite(matrix, right);
  const Fit& fit = fit_around(target.log_tokens);
  double ratio = 0;
  double explained = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ratio += weights[i] * fit.ratios[near[i]];
    explained += weights[i] * right[i];
  }
  return {fit.fitted(target.work) * std::exp(ratio),
          std::sqrt(std::max(kNugget, 1 + kNugget - explained))};
}

}  // namespace longca::advise
