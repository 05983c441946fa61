#include "report/plots.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/output_file.h"
#include "report/data/figures.h"
#include "report/gnuplot.h"
#include "report/gnuplot_figure.h"
#include "report/plots_index.h"

namespace longca {
namespace {

/// Draws figures, and remembers what it drew.
class Plotter {
 public:
  explicit Plotter(std::filesystem::path directory) : directory_(std::move(directory)) {}

  void draw(const FigureSet& set, const View& view) {
    for (const Figure& figure : set.figures) {
      for (const AxisTexts& setting : settings_to_draw(figure)) {
        const Figure narrow = narrowed(figure, setting);
        AxisTexts axes = setting;
        axes.insert(axes.end(), view.common.begin(), view.common.end());
        const std::string stem = plot_stem(figure.name, setting);
        const PlotScript script = gnuplot_figure(set, narrow, axes);
        for (const char* suffix : {".png", ".svg", ".pdf"}) {
          files_.push_back(directory_ / (stem + suffix));
          draw_with_gnuplot(files_.back(), script.width, script.height, script.text);
        }
        plots_.push_back({stem, figure.title, join_axes(setting, ", "), figure.hint});
      }
    }
  }

  std::vector<std::filesystem::path> finish(std::span<const Record> records) {
    files_.push_back(directory_ / "index.html");
    replace_file(files_.back(), plots_index(plots_, records));
    return std::move(files_);
  }

 private:
  std::filesystem::path directory_;
  std::vector<std::filesystem::path> files_;
  std::vector<IndexedPlot> plots_;
};

}  // namespace

std::vector<std::filesystem::path> write_plots(std::span<const Record> records,
                                               const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw_file_error("make the folder", directory, error.value());
  const SplitRecords split = split_records(records);
  const View single = make_view(split.single);
  const View over_ranks = make_view(split.over_ranks);
  const DenseComparison comparison = compare_with_dense(split.single);
  Plotter plotter(directory);
  plotter.draw(make_device_figures(single, comparison), single);
  plotter.draw(make_rank_figures(over_ranks, split), over_ranks);
  return plotter.finish(records);
}

}  // namespace longca
