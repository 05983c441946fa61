#pragma once

#include <span>
#include <vector>

namespace longca::advise {

/// A row of a system: known + Σ coefficient[j] · terms[j] ≈ value, value > 0.
struct FitRow {
  std::vector<double> terms;
  double value = 0;
  double weight = 1;  ///< > 0: how much its error counts
  double known = 0;   ///< the part of the value that needs no fit
};

/// Coefficients >= 0, one per term, that keep the relative errors |prediction / value - 1| small:
/// least absolute errors by iteratively reweighted least squares, so that single rows far off do
/// not matter. All rows have the same number of terms. Without rows there are none.
std::vector<double> fit_non_negative(std::span<const FitRow> rows);

/// Solves the symmetric positive definite system `matrix` (row-major, n × n) · x = right. `matrix`
/// is overwritten. Throws InternalError if it is not positive definite.
std::vector<double> solve_positive_definite(std::vector<double>& matrix,
                                            std::span<const double> right);

}  // namespace longca::advise
