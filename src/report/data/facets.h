#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "bench/suite/axes.h"

namespace longca {

/// What can differ between two cells that a view sets side by side: an axis of the case, the
/// machine, the build, or the host. Cells that differ in one are compared only where it is a row or
/// column.
struct Facet {
  std::string name;
  const Axis* axis = nullptr;  ///< null: machine, build, host
  std::function<std::optional<std::string>(const Record&)> text;

  /// Shown only where it is not the standard one.
  bool is_quiet(const std::string& value) const;
};

/// All axes in the order of their table; then "machine" where the cells of one kind of device come
/// from several, "build" where one machine measured a case with several, and "host" where machines
/// of the same card and driver did with one build.
std::vector<Facet> facets_of(std::span<const Record> records);

}  // namespace longca
