#pragma once

#include <iosfwd>
#include <span>

#include "bench/record/record.h"

namespace longca {

/// Writes the records as CSV (RFC 4180: CRLF, quoted if needed): one line per record, a column for
/// every axis and metric, empty if it does not apply or was not measured, and `first`: 1 where
/// tables mark the cell as the fastest of its problem or a tie with it. Texts are `printable`, and
/// one that a spreadsheet would read as a formula (it begins with = + - @) gets a leading
/// apostrophe.
void write_csv(std::ostream& out, std::span<const Record> records);

}  // namespace longca
