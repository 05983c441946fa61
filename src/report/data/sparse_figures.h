#pragma once

#include <vector>

#include "report/data/figure.h"
#include "report/dense_comparison.h"

namespace longca {

/// The figures of block-sparse attention compared with dense (figures.h), a panel per table of the
/// comparison and length. Without those that have no number.
std::vector<Figure> make_sparse_figures(const DenseComparison& comparison);

}  // namespace longca
