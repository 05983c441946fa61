#pragma once

#include <iosfwd>
#include <span>

#include "bench/record/record.h"

namespace longca {

struct TableOptions {
  int width = 100;     ///< columns of the terminal; less important table columns give way
  bool color = false;  ///< ANSI colours
};

/// Width and colours of the terminal at standard output. No colours where it is none, or if
/// NO_COLOR is set.
TableOptions terminal_table_options();

/// The records as a table for people: one group per mask and length (and every other axis that
/// varies), one row per kernel, forward and backward side by side; the fastest of a group is
/// marked, a cell without a number shows its status as a word and its reason below the group.
/// Block-sparse attention beside dense (sparse_table.h) and cells over ranks (ranks_table.h) follow
/// in tables of their own.
void print_table(std::ostream& out, std::span<const Record> records,
                 const TableOptions& options = {});

}  // namespace longca
