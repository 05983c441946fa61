#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "advise/interpolator.h"
#include "advise/work.h"
#include "bench/suite/case.h"

namespace longca::advise {

/// A measured cell from which a model learns.
struct ModelCell {
  Case c;
  Work work;
  double value = 0;  ///< > 0
};

/// What lies between a cell that is asked for and the nearest ones that were measured. Later ones
/// are further away.
enum class Situation : std::uint8_t {
  between_lengths,   ///< the same problem was measured at a shorter and at a longer length
  beyond_lengths,    ///< the same problem, on one side only
  other_heads,       ///< the same mask with other heads
  other_parameters,  ///< the mask of this name with other lengths, window, seed or blocks
  other_mask,
};
inline constexpr std::size_t kSituations = 5;
/// "interpolated between lengths": how a choice's interval came about, for people.
std::string_view describe(Situation situation);

/// An estimate with the interval that holds the measured value in 90 % of cells.
struct Prediction {
  double value = 0;
  double low = 0;
  double high = 0;
  Situation situation = Situation::other_mask;
};

/// Estimates a quantity of one kernel and pass from measured cells of the same shape (head_dim,
/// dtype, mode, …) by an Interpolator. The half width of an interval is the 90 % quantile of what
/// the same estimate was off by for cells that were left out in turn, all of one length, of one
/// pair of heads, of one mask's parameters or of one mask together, in the same situation
/// (conformal prediction: J. Lei et al., "Distribution-free predictive inference for regression",
/// 2018), in units of the estimate's own deviation. Cells of similar length count most: short calls
/// are less predictable (L. Guan, "Localized conformal prediction", 2023).
class CellModel {
 public:
  /// Fewer cells tell nothing.
  static constexpr std::size_t kMinCells = 8;
  static constexpr double kCoverage = 0.9;
  /// No interval is narrower than this on either side: runs of one program differ by as much.
  static constexpr double kRunToRun = 0.01;

  explicit CellModel(const std::vector<ModelCell>& cells, Quantity quantity = Quantity::time);

  /// Nothing if there are too few cells, or none was ever left out in a situation like this one.
  std::optional<Prediction> predict(const Case& c, const Work& work) const;

  std::size_t cells() const { return places_->all().size(); }

 private:
  void calibrate();
  /// What the estimate of a cell that was left out is off by, in units of its own deviation.
  struct Error {
    double size = 0;
    double log_tokens = 0;  ///< the cell's length, in octaves
  };
  using ErrorsBySituation = std::array<std::vector<Error>, kSituations>;
  /// Of the places `targets`, estimated from all others; none if these are too few.
  ErrorsBySituation errors_without(const std::vector<std::size_t>& targets) const;
  /// What estimates in that situation, at about that length, are off by.
  std::optional<double> spread(Situation situation, double log_tokens) const;

  std::unique_ptr<const Places> places_;
  std::optional<Interpolator> all_;  ///< of all places
  ErrorsBySituation errors_;         ///< ascending
  std::vector<Error> all_errors_;    ///< likewise
};

}  // namespace longca::advise
