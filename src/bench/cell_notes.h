#pragma once

#include "attention/reference/verifier.h"
#include "bench/measurement.h"
#include "bench/record.h"

namespace longca {

/// Writes the errors that were found, and how much was compared.
void note_verdict(const Verdict& verdict, Record& record);

/// Writes times, samples and why measuring ended. `flops`: of one repetition on one device.
void note_measurement(const Measurement& measured, double flops, Record& record);

/// No number without a check: takes from the record what timing wrote.
void forget_times(Record& record);

}  // namespace longca
