#pragma once

#include <iosfwd>

#include "report/dense_comparison.h"

namespace longca {

/// Block-sparse attention beside dense as Markdown tables under a heading of the second level.
/// Writes nothing for a comparison without tables.
void write_sparse_markdown(std::ostream& out, const DenseComparison& comparison);

}  // namespace longca
