#pragma once

#include <span>
#include <vector>

#include "bench/cell/problem.h"
#include "bench/ranks/exchange_work.h"
#include "bench/ranks/rank_clock.h"
#include "bench/ranks/rank_team.h"
#include "bench/suite/suite.h"

namespace longca {

/// An exchange's time on its slowest rank: the median of its repetitions.
struct ExchangeMs {
  double ms = 0;
  bool held = true;  ///< launch time is not in it (DeviceClock::held)
};

void to_json(nlohmann::json& json, const ExchangeMs& time);
/// Throws nlohmann::json::exception, and InputError for a time that is not above 0.
void from_json(const nlohmann::json& json, ExchangeMs& time);

/// Times exchanges of one transport on the slowest rank: each verified, timed as a cell's
/// repetitions are (measurement.h, RankClock), and verified again. The same times on all ranks.
/// Collective. Throws Refused on all ranks if they cannot use the transport or a byte is wrong; any
/// other exception on the rank where it happened.
std::vector<ExchangeMs> time_exchanges(RankTeam& team, std::span<const TimedExchange> exchanges,
                                       const RunLimits& limits, const StageListener& stage);

/// The same of one exchange, by `work` on this rank's `device`.
ExchangeMs time_exchange(const TimedExchange& exchange, ExchangeWork& work, RankClock& clock,
                         Device& device, RankControl& control, const RunLimits& limits);

}  // namespace longca
