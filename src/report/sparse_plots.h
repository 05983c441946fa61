#pragma once

#include <filesystem>
#include <vector>

#include "report/dense_comparison.h"

namespace longca {

/// Draws block-sparse attention beside dense into an existing directory, for each table with dense
/// cells a figure with a panel per length:
///   sparse-MASK-PASS-time  time ÷ dense over density, and in all where that was measured, dashed
///   sparse-MASK-PASS-mass  speed-up over dense against the kept mass, likewise; where it was
///                          measured
/// each as .png, .svg and .pdf. Returns the files, in order.
std::vector<std::filesystem::path> write_sparse_plots(const DenseComparison& comparison,
                                                      const std::filesystem::path& directory);

}  // namespace longca
