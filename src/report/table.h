#pragma once

#include <iosfwd>
#include <span>

#include "bench/record/record.h"
#include "report/dense_comparison.h"

namespace longca {

struct TableOptions {
  int width = 100;     ///< in characters; less important table columns are left out
  bool color = false;  ///< ANSI colours
};

/// The width that COLUMNS says, whether a terminal listens or not, else that of the terminal;
/// colours on a terminal, unless NO_COLOR is set and not empty, TERM is dumb or is not set, or
/// mpirun or srun has started this process with others.
TableOptions terminal_table_options();

/// Prints a summary (how each kernel does over all problems, what failed and why), then the records
/// as a table: one group per mask and length (and every other axis that varies), one row per
/// kernel, forward and backward side by side. The fastest of a group and its ties are marked; a
/// cell without a number shows its status, and why it cannot run stands below the groups.
/// Block-sparse attention compared with dense, and cells over ranks, follow in tables of their own.
void print_table(std::ostream& out, std::span<const Record> records,
                 const TableOptions& options = {});

/// Prints cells over ranks: one group per mask, length and number of ranks, one row per scheme;
/// rates are per rank. Bytes sent are marked = if they equal the scheme's formula to the byte, else
/// ≠, and then both are listed below. Needs at least one record; all are over ranks and of distinct
/// keys.
void print_ranks_table(std::ostream& out, std::span<const Record> records,
                       const TableOptions& options);

/// Prints block-sparse attention compared with dense: one table per mask, setting and pass, one row
/// per kernel, its densities side by side. Prints nothing for a comparison without tables.
void print_sparse_table(std::ostream& out, const DenseComparison& comparison,
                        const TableOptions& options);

}  // namespace longca
