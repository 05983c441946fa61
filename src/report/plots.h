#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "bench/record/record.h"

namespace longca {

/// Draws the records through gnuplot into `directory` (made if missing): for each pass, and each
/// setting of the axes beside mask, tokens and kernel, one figure of grouped bars, kernels side by
/// side per mask and length, as NAME.png, NAME.svg and NAME.pdf; block-sparse attention
/// beside dense (sparse_plots.h) and cells over ranks (ranks_plots.h) have their own. A cell
/// without a number is marked: X unsupported, E out of memory, and so on as the figure's key says.
/// Returns the files, in order. Throws InputError if gnuplot is not installed or the directory
/// cannot be written.
std::vector<std::filesystem::path> write_plots(std::span<const Record> records,
                                               const std::filesystem::path& directory);

}  // namespace longca
