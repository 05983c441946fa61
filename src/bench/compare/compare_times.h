#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bench/compare/shift.h"

// Which of two programs takes longer, cell by cell: docs/design/compare.md says how and why, and
// how often it errs.

namespace longca {

/// The share of calls that may be false, and so the most with which one cell without any change is
/// called slower or faster.
inline constexpr double kFalseDiscoveries = 0.01;
/// 1 - the coverage of low to high.
inline constexpr double kOutside = 0.05;
/// Two processes of one program differ by up to this, so one round a side proves no smaller change.
inline constexpr double kProcessSpread = 0.05;
/// The least effect that matters, where nobody says otherwise.
inline constexpr double kMinEffect = 0.01;

/// What two cells took: a list of rounds each. One round stands for samples whose
/// process-to-process spread is unknown.
struct TimePair {
  Rounds base;
  Rounds next;
};

enum class Change : std::uint8_t {
  same,     ///< shown to be within the least effect: low and high are
  faster,   ///< shown to differ, by the least effect or more
  slower,   ///< the same
  unclear,  ///< neither is shown
};
std::string_view to_string(Change change);

struct TimeRatio {
  double ratio = 1;  ///< time of next ÷ time of base
  /// Enclose the ratio of what the programs take with 95 %; absent where nothing tells the spread.
  std::optional<double> low, high;
  Change change = Change::unclear;
  bool over_rounds = false;  ///< both sides had 2 rounds, so that the spread of processes is known
};

/// One answer per pair, in order; nothing for a pair without a time above 0 on either side.
/// `min_effect`, a share >= 0, is the least change that matters. False calls of `slower` and
/// `faster` are controlled over all pairs together (Benjamini and Hochberg, at kFalseDiscoveries).
std::vector<std::optional<TimeRatio>> compare_times(std::span<const TimePair> pairs,
                                                    double min_effect = kMinEffect);

}  // namespace longca
