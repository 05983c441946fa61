#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "advise/work.h"
#include "bench/suite/case.h"

namespace longca::advise {

/// What is estimated: a time in ms, or the peak of memory in bytes.
enum class Quantity : std::uint8_t { time, memory };

/// Where a cell lies among others of its series, and what was measured there.
struct Place {
  std::int64_t tokens = 0;
  std::string mask;
  std::string parameters{};  ///< of the mask, with its name
  int heads_q = 0;
  int heads_k = 0;
  double log_tokens = 0;   ///< in octaves
  double log_density = 0;  ///< natural
  Work work{};
  double value = 0;  ///< measured, > 0; of a place that is asked for 0
};

Place place_of(const Case& c, const Work& work, double value);
bool same_heads(const Place& a, const Place& b);
/// Of the logarithms of two places' ratios measured ÷ fitted: 1 at the same place.
double covariance(const Place& a, const Place& b);

/// The measured cells of a series, and the covariance of each two.
class Places {
 public:
  Places(std::vector<Place> places, Quantity quantity);

  Quantity quantity() const { return quantity_; }
  const std::vector<Place>& all() const { return places_; }
  double covariance_of(std::size_t a, std::size_t b) const {
    return covariances_[a * places_.size() + b];
  }
  /// With every measured cell.
  std::vector<double> covariances_with(const Place& target) const;

 private:
  std::vector<Place> places_;
  Quantity quantity_;
  std::vector<double> covariances_;
};

/// Where a kernel's grid of tiles begins.
enum class TileGrid : std::uint8_t {
  matrix,     ///< at the corner of the score matrix
  documents,  ///< of packed documents at that of each, as where they are sequences of variable
              ///< lengths; of other masks as above
};

/// Estimates a quantity from the cells given: a sum of what each part of the work costs
/// (non-negative coefficients, least_squares.h) and of the memory that is known, in which cells of
/// similar length count most, times the ratio measured ÷ fitted of the nearest cells. The ratios'
/// logarithms are interpolated by simple kriging (G. Matheron, "Principles of geostatistics", 1963)
/// over the logarithm of the length, the heads and the mask.
class Interpolator {
 public:
  struct Estimate {
    double value = 0;
    double deviation = 0;  ///< of its logarithm, up to a factor that is the same everywhere
  };

  /// Uses those of the `places`, which outlive it, whose numbers are `chosen`: at least one.
  /// Without a `grid` takes the one that fits them better.
  Interpolator(const Places& places, std::vector<std::size_t> chosen,
               std::optional<TileGrid> grid = std::nullopt);

  const std::vector<std::size_t>& chosen() const { return chosen_; }
  TileGrid grid() const { return grid_; }
  /// For a new place.
  Estimate estimate(const Place& target) const;
  /// For a measured one that is not among the chosen.
  Estimate estimate(std::size_t target) const;

 private:
  /// What each part of the work costs, around one length.
  struct Fit {
    Quantity quantity = Quantity::time;
    TileGrid grid = TileGrid::matrix;
    std::vector<double> coefficients{};
    std::vector<double> ratios{};  ///< log(measured ÷ fitted) of the chosen

    double fitted(const Work& work) const;
    /// The mean of the ratios' magnitudes.
    double error() const;
  };
  /// Without a length all cells count alike.
  Fit fit(TileGrid grid, std::optional<double> log_tokens) const;
  const Fit& fit_around(double log_tokens) const;
  /// `covariances`: of the target with each chosen place.
  Estimate interpolate(const Place& target, const std::vector<double>& covariances) const;

  const Places* places_;
  std::vector<std::size_t> chosen_;
  TileGrid grid_;
  mutable std::map<double, Fit> fits_;  ///< made when first asked for, by the length
};

}  // namespace longca::advise
