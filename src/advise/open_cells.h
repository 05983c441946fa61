#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "advise/advisor.h"

namespace longca::advise {

/// A cell that was not measured, and could change which choice is the first.
struct OpenCell {
  Case c;
  /// How far below the most that the first choice may take this one may come, as a share of what
  /// the first is expected to take; infinite where nothing is known of the kernel. Of the first
  /// choice itself: how far a rival may come; 0 if none may.
  double matters = 0;
  double expected_ms = 0;  ///< of one call; of what is unknown the most of all choices
};

/// The cells on one device, those that matter most first. What cannot overlap the first choice is
/// none of them; the first choice is one, unless it was measured.
std::vector<OpenCell> open_cells(std::span<const Advice> answers, Objective objective);

/// What measuring turned the first choice of a problem from and to.
struct ChangedChoice {
  Case problem;
  std::optional<Choice> before;
  std::optional<Choice> after;
};
/// `before` and `after` answer the same problems in the same order.
std::vector<ChangedChoice> changed_choices(std::span<const Advice> before,
                                           std::span<const Advice> after);
/// "slice stays first: 8.14 ms, expected 7.49 to 8.85".
std::string describe(const ChangedChoice& change);

}  // namespace longca::advise
