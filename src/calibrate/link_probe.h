#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/ranks/exchange_times.h"
#include "core/device.h"

namespace longca::calibrate {

/// An exchange and its time on the slowest rank.
struct ExchangeTime {
  TimedExchange exchange;
  double ms = 0;
  bool held = true;  ///< ExchangeMs::held
};

/// What is measured of a transport between devices of this kind: rings and all-to-alls of 1 KiB to
/// 1 GiB (64 MiB on a CPU) a rank, each twice the one before, but at most a sixteenth of
/// `free_bytes`, which each rank has; and rings of several messages, and several rings in a row.
std::vector<TimedExchange> standard_exchanges(const std::string& transport, DeviceKind kind,
                                              std::int64_t free_bytes);

/// In a random order of its own for each round, so that a while in which the machine was busy with
/// something else does not fall on adjacent sizes of every round.
std::vector<TimedExchange> order_of_round(std::vector<TimedExchange> exchanges, int round);

/// Throws InputError for a time that is no finite number above 0.
void refuse_no_times(std::span<const ExchangeTime> times);

/// The figures of a platform's links (cost::LinkRates), of which an exchange takes
///   exchanges · (seconds_per_exchange + further messages · seconds_per_message
///                + bytes / bytes_per_second) + seconds_to_begin.
struct LinkFigures {
  double bytes_per_second = 0;
  double seconds_per_exchange = 0;
  double seconds_per_message = 0;
  double seconds_to_begin = 0;
};

/// By least squares of relative errors over exchanges of one transport among `ranks` ranks; a
/// figure that the times do not need is 0. Throws InputError as refuse_no_times, and where no rate
/// fits.
LinkFigures fit_links(std::span<const ExchangeTime> times, int ranks);

}  // namespace longca::calibrate
