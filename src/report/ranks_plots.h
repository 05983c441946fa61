#pragma once

#include <filesystem>
#include <vector>

#include "report/view.h"

namespace longca {

/// Draws the cells over ranks into an existing directory, for each mask and pass three figures with
/// a panel per scaling (scaling.h), schemes side by side over the numbers of ranks:
///   cp-MASK-PASS-tflops   rate per rank, with the same kernel's without communication in grey
///   cp-MASK-PASS-exposed  time of the steps alone and, lighter, what communication adds
///   cp-MASK-PASS-error    largest relative error of the outputs
/// each as .png, .svg and .pdf. A figure that no cell has a number for is left out but for tflops,
/// which lists what has none. Returns the files, in order.
std::vector<std::filesystem::path> write_ranks_plots(const SplitRecords& records,
                                                     const std::filesystem::path& directory);

}  // namespace longca
