#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "bench/record/record.h"
#include "report/plot_parts.h"
#include "report/plots_index.h"

namespace longca {

/// A figure of one setting, ready to be drawn.
struct Plot {
  IndexedPlot listed;
  PlotScript script;
};

/// The figures of the records (data/figures.h), one per setting of the axes that vary, which its
/// stem ends in, at most kMaxSeries series in each.
std::vector<Plot> plots_of(std::span<const Record> records);

/// Draws them through gnuplot into `directory`, which is made if missing: each as STEM.png,
/// STEM.svg and STEM.pdf. Then writes index.html, a page that lists them with their titles. Returns
/// the files, the index last. Throws InputError if gnuplot is not installed or a file cannot be
/// written.
std::vector<std::filesystem::path> write_plots(std::span<const Record> records,
                                               const std::filesystem::path& directory);

}  // namespace longca
