#pragma once

#include <iosfwd>

#include "report/dense_comparison.h"
#include "report/table.h"

namespace longca {

/// Block-sparse attention beside dense as a table for people: one per mask, setting and pass, a
/// row per kernel, its densities side by side. Prints nothing for a comparison without tables.
void print_sparse_table(std::ostream& out, const DenseComparison& comparison,
                        const TableOptions& options);

}  // namespace longca
