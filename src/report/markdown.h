#pragma once

#include <iosfwd>
#include <span>

#include "bench/record/record.h"

namespace longca {

/// The records as Markdown tables, grouped as the console table is.
void write_markdown(std::ostream& out, std::span<const Record> records);

}  // namespace longca
