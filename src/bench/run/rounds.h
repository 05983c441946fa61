#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/record/record.h"
#include "bench/suite/case.h"

namespace longca {

// Rounds: a suite run several times, each time in new processes and in another order, since
// repetitions inside one process do not show how much processes differ (docs/design/compare.md).

/// The most rounds of a run.
inline constexpr int kMaxRounds = 1000;

/// Throws InputError for a number of rounds that is not from 1 to kMaxRounds.
void check_rounds(std::int64_t rounds);

/// The number of rounds in a record; samples without a list of rounds are one.
std::size_t rounds_of_record(const Record& record);

/// The cases in a random order that depends on seed and round. Cells of one problem stay together,
/// since they share inputs and reference, and so do those of one number of ranks, which share
/// processes; inside such groups the order is random as well.
std::vector<Case> order_of_round(std::span<const Case> cases, std::uint64_t seed, int round);

/// Adds one round to `earlier`, the record of all rounds so far. If the round failed, its record is
/// the result. Samples are joined; time_ms, its interval (over rounds) and tflops are of all of
/// them. The others are joined as the table of metrics says (OverRounds): a maximum over the rounds
/// that have them, a mean or a median over all, or left out where not all have one. The values of
/// medians stay in the record, by round, for those to come.
Record with_round(const Record& earlier, const Record& round);

}  // namespace longca
