#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "report/dense_comparison.h"
#include "report/view.h"

namespace longca {

// Figures drawn through gnuplot, each as NAME.png, NAME.svg and NAME.pdf. All functions that draw
// return the files, in order, and throw InputError if gnuplot is not installed or a file cannot be
// written.

/// Draws the records into `directory`, which is made if missing. For each pass, and each setting of
/// the axes other than mask, tokens and kernel, there is one figure of grouped bars, kernels side
/// by side per mask and length. A cell without a number is marked (X unsupported, E out of memory,
/// …) as the figure's key explains. Then follow the figures of block-sparse attention and of cells
/// over ranks, below.
std::vector<std::filesystem::path> write_plots(std::span<const Record> records,
                                               const std::filesystem::path& directory);

/// Draws block-sparse attention compared with dense into an existing directory, for each table with
/// dense cells two figures with a panel per length:
///   sparse-MASK-PASS-time  time ÷ dense over density; dashed, if measured, with selection and
///                          planning
///   sparse-MASK-PASS-mass  speed-up over dense over the kept mass, likewise, if that was measured
std::vector<std::filesystem::path> write_sparse_plots(const DenseComparison& comparison,
                                                      const std::filesystem::path& directory);

/// Draws the cells over ranks into an existing directory, for each mask and pass three figures with
/// a panel per scaling, schemes side by side over the numbers of ranks:
///   cp-MASK-PASS-tflops   rate per rank; grey: the same kernel's without communication
///   cp-MASK-PASS-exposed  time of the steps alone; lighter: what communication adds
///   cp-MASK-PASS-error    largest relative error of the outputs
/// A figure without any number is left out, except tflops, which lists the cells without one.
std::vector<std::filesystem::path> write_ranks_plots(const SplitRecords& records,
                                                     const std::filesystem::path& directory);

/// One bar of a panel, or the mark that stands in its place.
struct FigureBar {
  std::size_t kernel = 0;      ///< index into Figure::kernels
  double x = 0;                ///< of its middle; the panel's lengths are at 0, 1, 2, …
  std::optional<double> rate;  ///< in Figure::unit
  StatusCode status = StatusCode::ok;
};

/// A kernel that has no number in a panel, and the statuses that it has instead.
struct FigureAbsence {
  std::size_t kernel = 0;  ///< index into Figure::kernels
  std::set<StatusCode> statuses{};
};

/// One mask over its lengths.
struct FigurePanel {
  std::string title;
  std::vector<std::int64_t> tokens{};  ///< ascending
  double bar_width = 0;
  std::vector<FigureBar> bars{};
  /// Kernels without a number at any length. They are listed here, and have no bars, if the panel
  /// has so many bars that marks between them would not be readable.
  std::vector<FigureAbsence> absent{};
};

/// One pass at one setting of the axes: a figure of grouped bars.
struct Figure {
  Pass pass = Pass::forward;
  AxisTexts name;     ///< what distinguishes it from the other figures of the pass
  AxisTexts setting;  ///< all axes that its cells share
  RateUnit unit;
  std::vector<std::string> kernels;  ///< of the whole view, so that colours agree between figures
  std::vector<FigurePanel> panels;

  double largest_rate() const;
  /// Whether some bar is the kernel's, or has the status.
  bool shows(std::size_t kernel) const;
  bool shows(StatusCode status) const;
};

std::vector<Figure> make_figures(const View& view);

}  // namespace longca
