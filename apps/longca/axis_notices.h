#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/suite/axes.h"

// What a command says of axes that were given and have no effect: one line each.

namespace longca {

/// "--set nic_gbps is given 2 times: the last one counts, nic_gbps=200", for each name that several
/// of the NAME=VALUE arguments of one option give.
std::vector<std::string> describe_repeated(std::string_view option,
                                           std::span<const std::string> arguments);

/// "-a window=5 is used by no cell: it is of sliding_window, …", for each AXIS=VALUES argument of
/// which no cell has the axis. `chosen`: the axes of all cells, with the command line's over them;
/// those that it lacks have their standard. Cells have schemes only if they are `over_ranks`.
std::vector<std::string> describe_unused(std::span<const std::string> arguments,
                                         const AxisValues& chosen, bool over_ranks);

/// The masks that depend on the axis, as "sliding_window, global_sliding_window". `axis` is one
/// that depends on the mask (Axis::applies).
std::string masks_with(const Axis& axis);

}  // namespace longca
