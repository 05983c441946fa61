#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "calibrate/link_probe.h"
#include "calibrate/probe.h"
#include "cost/platform.h"

namespace longca::calibrate {

/// What one round measured, in processes of its own.
struct Round {
  std::vector<ProbeTime> probes;
  std::vector<Record> records;  ///< cells on one device; those that are not ok are left out
  std::vector<ExchangeTime> exchanges{};  ///< of all transports, among Machine::ranks
};

/// The machine that was measured.
struct Machine {
  DeviceKind kind = DeviceKind::cuda;
  std::string card;              ///< the device's name: "NVIDIA H200"
  std::int64_t sms = 0;          ///< of a CPU: cores that this process may use
  std::int64_t cache_bytes = 0;  ///< 0 if unknown
  std::int64_t devices = 1;      ///< GPUs of this host; of a CPU: ranks that its cores take
  std::string date;              ///< "2026-11-23"
  int ranks = 1;                 ///< between which exchanges were measured; 1: none were
};

/// The name of a card's platform: "NVIDIA H100 80GB HBM3" is "h100_80gb_hbm3".
std::string platform_name_of(const std::string& card);

/// The platform of a machine by pure computation from at least two rounds. A figure is fitted to
/// the medians over rounds; its spread is how far the fit to a single round is from it at most.
/// Sections and figures that were not measured are those of `base`, and `measured` says so.
///
/// Calls of a kernel: least squares of relative errors (simulate::fit_rate), at least one key a row
/// and 0.1 µs a call, below which a fit resolves nothing. Calls of `slice` also give the cycles per
/// second at which simulate::SliceTimes is right in the mean of logarithms. On a CPU kernel.forward
/// and kernel.backward are of the first kernel.
///
/// Exchanges: each ring and all-to-all of one message is a figure of messages.TRANSPORT.PATTERN;
/// the links have the figures (fit_links) of the first transport that was measured among peer,
/// nccl, mpi. Throws InputError for times that are none.
cost::Platform fit_platform(const cost::Platform& base, const Machine& machine,
                            std::span<const Round> rounds, const std::string& name);

}  // namespace longca::calibrate
