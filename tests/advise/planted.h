#pragma once

#include <functional>
#include <string>
#include <vector>

#include "advise/evidence.h"
#include "bench/record/record.h"

namespace longca::advise::testing {

inline constexpr const char* kCard = "NVIDIA H200";

/// A canonical case on the card: bfloat16, heads 64:8, dim 128.
Case case_of(const std::string& kernel, const std::string& mask, std::int64_t tokens,
             Pass pass = Pass::forward);

/// What a planted cell takes, in ms: a law of the mask's work.
double law_ms(const Case& c, double per_full_tile, double per_partial_tile);

Record record_of(const Case& c, double time_ms, double peak_bytes = 1e9,
                 const std::string& card = kCard);
/// One that is not ok.
Record failed_record(const Case& c, StatusCode code, const std::string& reason);

/// Both passes of `slice` and of `flex`, which takes 1.5 times as long, on five masks at five
/// lengths from 1K to 16K, by a law; backward passes take 2.5 times as long.
std::vector<Record> planted_records();

/// The evidence of records, which need not outlive it.
Evidence evidence_of(const std::vector<Record>& records);

}  // namespace longca::advise::testing
