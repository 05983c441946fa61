#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/probe.h"

namespace longca::calibrate {

/// Runs a probe in this process: verifies a call, times calls as a cell's are (measurement.h), and
/// verifies the last one. Throws std::runtime_error for a wrong result.
ProbeTime run_probe(const Probe& probe, DeviceKind kind, double time_limit_s);

/// The process that runs probes: sends their times, or what went wrong, over the socket.
void answer_probes(int socket, std::span<const Probe> probes, DeviceKind kind, double time_limit_s);

/// Runs the probes in a new process, at most `limit_s` seconds long. `command` starts it, before
/// the probes and "--socket N". Throws SystemError with what it said if it fails.
std::vector<ProbeTime> ask_probes(std::vector<std::string> command, std::span<const Probe> probes,
                                  double limit_s);

}  // namespace longca::calibrate
