#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost/platform.h"

namespace longca::calibrate {

/// A figure that a platform's page has with its spread, and what it is now.
struct CheckedFigure {
  std::string key;
  double before = 0;
  double now = 0;
  double allowed = 0;  ///< by what part it may change: both spreads, but at least the least effect
  /// A point of a curve beyond what is allowed beside which no other one is, in the same direction.
  bool is_alone = false;
  bool has_moved() const { return is_beyond() && !is_alone; }
  bool is_beyond() const;
};

/// Whether the figure is a point of a curve: messages.TRANSPORT.PATTERN.BYTES.
bool is_of_curve(std::string_view key);
/// Whether the figure is what a fit of times leaves beside the work itself, which may be nothing.
bool is_intercept(std::string_view key);
/// "messages.peer.ring" of "messages.peer.ring.1024".
std::string section_of(std::string_view key);

/// A figure off by as much as itself, or more, has not been told from nothing.
inline constexpr double kUnresolved = 1;

/// The figures of `page` that have a spread there and in `now`, in the order of the page, without
/// intercepts that are not resolved in one of them: by what part these changed says nothing.
/// `min_effect`: changes up to this part are none.
///
/// Of three rounds before and three now, one figure in 25 is beyond both spreads by chance where
/// the noise is above 2 %. Curves have many points, so that one of them has moved only where the
/// next one has too: of 42 points, one is then named by chance in one check of 20 instead of four
/// of 5.
std::vector<CheckedFigure> check_figures(const cost::Platform& page, const cost::Platform& now,
                                         double min_effect);

/// The kernels whose rates the page has measured.
std::vector<std::string> measured_kernels(const cost::Platform& page);
/// Whether the page has measured links.
bool has_measured_links(const cost::Platform& page);

}  // namespace longca::calibrate
