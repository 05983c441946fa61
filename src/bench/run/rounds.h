#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/record/record.h"
#include "bench/suite/case.h"

namespace longca {

// Rounds: a suite run several times over, each time in new processes and in another order, since
// repetitions inside one process do not show how much processes differ (docs/design/compare.md).

/// The most rounds of a run.
inline constexpr int kMaxRounds = 1000;

/// Throws InputError for a number of rounds that is not from 1 to kMaxRounds.
void check_rounds(std::int64_t rounds);

/// Rounds that the record has: its samples are one where it has no list of them.
std::size_t rounds_of_record(const Record& record);

/// Another order of the cases for each round, the same for the same seed. Cells of one problem stay
/// together, since they share inputs and reference, and so do those of one number of ranks, which
/// share processes; their order inside is new as well.
std::vector<Case> order_of_round(std::span<const Case> cases, std::uint64_t seed, int round);

/// The record of all rounds so far, `earlier`, with one round more. A round that failed makes the
/// whole record its failure. Samples are joined, and time_ms, its interval (over the rounds) and
/// tflops are of all of them; of memory, errors and temperature the largest counts, of all other
/// metrics the mean over rounds.
Record with_round(const Record& earlier, const Record& round);

}  // namespace longca
