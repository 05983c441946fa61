#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record/record.h"
#include "bench/suite/axes.h"
#include "report/format.h"

namespace longca {

/// What can differ between two cells that a view sets side by side: an axis of the case, the
/// machine, the build, or the host. Cells that differ in one are compared only where it is a row or
/// column.
struct Facet {
  std::string name;
  const Axis* axis = nullptr;  ///< null: machine, build, host
  /// Of a record of those that facets_of was given, which outlive it.
  std::function<std::optional<std::string>(const Record&)> text;

  /// Shown only where it is not the standard one.
  bool is_quiet(const std::string& value) const;
};

/// The build or host of cells beside which older ones of the same case stand, if they have several.
inline constexpr std::string_view kLatest = "latest of each cell";

/// All axes in the order of their table; then "machine" where the cells of one kind of device come
/// from several, "build" where one machine measured a case with several, and "host" where machines
/// of the same card and driver did with one build.
///
/// Cells that several builds measured once between them are compared. Of a case with several only
/// the latest cell stands beside those, as of build kLatest, and the older ones apart by their
/// builds. All have their builds where the latest are of one, or where each case has several. Hosts
/// alike.
std::vector<Facet> facets_of(std::span<const Record> records);

/// Whether the cells of this setting have a build or host, and not kLatest: older ones, perhaps.
bool names_origin(const AxisTexts& setting);

}  // namespace longca
