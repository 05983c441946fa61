#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"

namespace longca {

/// A simulated cell beside the measured one of the same case.
struct ComparedCell {
  Record simulated;
  Record measured;

  double error() const;  ///< simulated over measured time, less 1
};

/// The cells over GPUs that are ok, the last of each case.
std::vector<Record> measured_over_ranks(std::span<const Record> records);

/// Pairs cells of one case, but for mode and platform, that are ok on both sides.
std::vector<ComparedCell> compare_simulated(std::span<const Record> simulated,
                                            std::span<const Record> measured);

/// How often two schemes of one problem, kernel and pass, whose measured times differ by more than
/// 2 %, come in the measured order.
struct SchemeOrder {
  int pairs = 0;
  int right = 0;
};
SchemeOrder order_of_schemes(std::span<const ComparedCell> cells);

/// How good it is to take the scheme that is the fastest when simulated: regret is its measured
/// time over that of the fastest, less 1. Of problems, kernels and passes with two schemes or more.
struct SchemeChoice {
  int problems = 0;
  int near = 0;  ///< regret of at most 3 %
  double regret_sum = 0, worst_regret = 0;

  double mean_regret() const { return problems > 0 ? regret_sum / problems : 0; }
};
SchemeChoice choice_of_schemes(std::span<const ComparedCell> cells);

/// Errors of several cells, as fractions; the worst with its sign.
struct SimulationErrors {
  std::string by;  ///< "scheme", "pass", "mask", "compute_ms" or "all"
  std::string name;
  int cells = 0;
  double sum = 0, signed_sum = 0, worst = 0;
  int near = 0;                 ///< of at most 6 %
  std::vector<double> sizes{};  ///< without their signs

  void add(double error);
  double p90() const;  ///< the smallest size that 90 % of the cells do not exceed
};

/// By scheme, by pass, by mask, of the kernels' time alone where both have it, and of all.
std::vector<SimulationErrors> errors_of_simulated(std::span<const ComparedCell> cells);

/// One JSON object: {"errors":[{"by","name","cells","mean_pct","signed_pct","p90_pct",
/// "worst_pct","within_6_pct"}],"order":{"pairs","right"},"choice":{"problems","within_3_pct",
/// "mean_regret_pct","worst_regret_pct"}}; without problems both regrets are null.
std::string json_of_simulated(std::span<const ComparedCell> cells);

/// A line per cell, then mean and worst error by scheme, pass and in all, the share within 6 %, and
/// the order and the choice of schemes. `compute_ms` is compared in the sums too, where both have
/// it.
std::string comparison_of_simulated(std::span<const ComparedCell> cells);

}  // namespace longca
