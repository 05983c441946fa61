#pragma once

#include <iosfwd>
#include <span>

#include "bench/record/record.h"
#include "report/table.h"

namespace longca {

/// Records of cells over ranks as a table for people: one group per mask, length and number of
/// ranks, one row per scheme; rates are per rank. Bytes sent are marked: = if they equal the
/// scheme's formula to the byte, ≠ if not, and then both are listed below. There is at least one
/// record, all are over ranks, of distinct keys.
void print_ranks_table(std::ostream& out, std::span<const Record> records,
                       const TableOptions& options);

}  // namespace longca
