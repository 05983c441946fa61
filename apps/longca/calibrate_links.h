#pragma once

#include <string>
#include <vector>

#include "bench/suite/suite.h"
#include "calibrate/link_probe.h"
#include "core/device.h"

// What `longca calibrate` measures of links.

namespace longca {

/// Between how many ranks, and over what.
struct LinkRequest {
  int ranks = 1;  ///< 1: links are not measured
  std::vector<std::string> transports;
  bool asked = false;                ///< the command line says how many, or over what
  bool are_named = false;            ///< it names the transports
  std::vector<std::string> notices;  ///< what is not measured, and why, a line each
};

/// Takes the axes `ranks` and `transport` out of `axes`. Without them: all GPUs of this machine and
/// the transports that they have, if there are two or more; on a CPU nothing. Throws InputError for
/// what this machine lacks, if it is named.
LinkRequest take_link_axes(std::vector<std::string>& axes, DeviceKind kind);

/// One round of exchanges in new processes; what was measured until then if a signal came. Leaves
/// out of `request`, with a notice on stderr, a transport that is not named and that the ranks
/// cannot use. Throws InputError if they cannot use a named one, SystemError for a wrong byte and
/// for ranks that end.
std::vector<calibrate::ExchangeTime> measure_links(LinkRequest& request, DeviceKind kind,
                                                   const RunLimits& limits, int round);

}  // namespace longca
