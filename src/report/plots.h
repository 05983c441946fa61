#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "bench/record/record.h"

namespace longca {

/// Draws the figures of the records (data/figures.h) through gnuplot into `directory`, which is
/// made if missing: each as NAME.png, NAME.svg and NAME.pdf, one per setting of the axes that vary,
/// which the name ends in, at most kMaxSeries series in each. Then writes index.html, a page that
/// lists them with their titles. Returns the files, the index last. Throws InputError if gnuplot is
/// not installed or a file cannot be written.
std::vector<std::filesystem::path> write_plots(std::span<const Record> records,
                                               const std::filesystem::path& directory);

}  // namespace longca
