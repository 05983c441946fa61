#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "advise/advisor.h"

namespace longca::advise {

/// What is left out together before it is estimated from the rest.
enum class LeftOut : std::uint8_t { mask, length, heads };
inline constexpr LeftOut kLeftOut[] = {LeftOut::mask, LeftOut::length, LeftOut::heads};
std::string_view to_string(LeftOut left_out);

/// A cell that the advisor had not seen.
struct HeldOutCell {
  Case c;
  double measured_ms = 0;
  Expected expected_ms;
  std::optional<double> memory_error{};  ///< |estimated ÷ measured - 1| of the peak in bytes
};

/// A problem that it had not seen: the choice among the kernels that have records of it.
struct HeldOutChoice {
  Case problem;
  std::string chosen{};    ///< "" if it recommended nothing
  bool could_run = false;  ///< the choice has a time
  double regret = 0;       ///< time of the choice ÷ that of the fastest - 1, if it could run
  /// Whether the choice, or one that was said to be tied with it, is the fastest or within
  /// Ranking::kTie of it.
  bool right_or_tied = false;
};

/// Of cells on one device: kernels' times one by one, and choices for a forward pass, a backward
/// pass and a step.
struct HeldOut {
  LeftOut left_out = LeftOut::mask;
  std::vector<HeldOutCell> cells{};
  std::vector<HeldOutChoice> choices{};
};

/// Leaves out every mask, length or pair of heads of the evidence in turn and lets an Advisor that
/// has only the rest answer for it. Nothing is left out where there is only one value.
HeldOut leave_out(const Evidence& evidence, MaskFacts& masks, LeftOut left_out);

/// How good estimates and choices were. What there is none of is 0.
struct Score {
  std::size_t cells = 0;
  double median_error = 0;  ///< |estimated ÷ measured - 1|
  double p90_error = 0;
  double coverage = 0;    ///< the share of cells whose interval holds what was measured
  std::size_t peaks = 0;  ///< cells whose peak of memory was measured and estimated
  double p90_memory_error = 0;
  std::size_t choices = 0;
  double mean_regret = 0;  ///< of the choices that could run
  double p95_regret = 0;
  /// Of choices made, the share that are the fastest, or within Ranking::kTie of it; and of which
  /// that is true if what was called tied counts.
  double right = 0;
  double right_or_tied = 0;
  std::size_t could_not_run = 0;  ///< choices that turned out to have no time
  std::size_t no_answer = 0;      ///< nothing was recommended: it did not know
};
Score score_of(std::span<const HeldOutCell> cells, std::span<const HeldOutChoice> choices);

/// Scores by kernel (its cells; the choices that chose it) and by mask, in order of appearance.
struct NamedScore {
  std::string name;
  Score score;
};
std::vector<NamedScore> scores_by_kernel(const HeldOut& held_out);
std::vector<NamedScore> scores_by_mask(const HeldOut& held_out);

}  // namespace longca::advise
