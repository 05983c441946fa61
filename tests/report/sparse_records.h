#pragma once

#include <vector>

#include "bench/record/record.h"

namespace longca::testing {

/// A suite of block-sparse attention on a GPU, and dense cells of the same lengths: random blocks
/// of 64 and 128 tokens, densities 0.2, 0.5, 0.8, 32K and 64K tokens, 64:8 and 64:64 heads, both
/// passes. slice is faster than dense everywhere, naive nowhere, flex and vsa cross over, vsa takes
/// 64:64 heads and blocks of 64 only; flex has no number at one density, and dense none at 64K
/// tokens with 64:64 heads.
std::vector<Record> sparse_records();

/// Blocks chosen from scores: 32K tokens, 64:8 heads, blocks of 64, forward; with what choosing
/// costs and what the kept blocks hold. No dense cells.
std::vector<Record> selected_records();

/// `records` and `others`.
std::vector<Record> joined(std::vector<Record> records, const std::vector<Record>& others);

}  // namespace longca::testing
