#include "report/plots.h"

#include <algorithm>
#include <span>
#include <string>

#include "core/output_file.h"
#include "report/data/figures.h"
#include "report/gnuplot.h"
#include "report/gnuplot_figure.h"
#include "report/page_title.h"
#include "report/plots_index.h"

namespace longca {
namespace {

void add_plots(const FigureSet& set, const View& view, std::span<const Record> records,
               std::vector<Plot>& plots) {
  const std::string machines = machines_text(records);
  for (const Figure& figure : set.figures) {
    for (const AxisTexts& setting : settings_to_draw(figure)) {
      AxisTexts axes = setting;
      axes.insert(axes.end(), view.common.begin(), view.common.end());
      const auto names_machine = [](const auto& axis) { return axis.first == "machine"; };
      if (!machines.empty() && std::ranges::none_of(axes, names_machine)) {
        axes.emplace_back("machine", machines);
      }
      plots.push_back(
          {{plot_stem(figure.name, setting), figure.title, join_axes(setting, ", "), figure.hint},
           gnuplot_figure(set, narrowed(figure, setting), axes)});
    }
  }
}

}  // namespace

std::vector<Plot> plots_of(std::span<const Record> records) {
  const SplitRecords split = split_records(records);
  const View single = make_view(split.single);
  const View over_ranks = make_view(split.over_ranks);
  const DenseComparison comparison = compare_with_dense(split.single);
  std::vector<Plot> plots;
  add_plots(make_rank_figures(over_ranks, split), over_ranks, split.over_ranks, plots);
  add_plots(make_device_figures(single, comparison), single, split.single, plots);
  return plots;
}

std::vector<std::filesystem::path> write_plots(std::span<const Record> records,
                                               const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw_file_error("make the folder", directory, error.value());
  std::vector<std::filesystem::path> files;
  std::vector<IndexedPlot> listed;
  for (const Plot& plot : plots_of(records)) {
    for (const char* suffix : {".png", ".svg", ".pdf"}) {
      files.push_back(directory / (plot.listed.stem + suffix));
      draw_with_gnuplot(files.back(), plot.script.width, plot.script.height, plot.script.text);
    }
    listed.push_back(plot.listed);
  }
  files.push_back(directory / "index.html");
  replace_file(files.back(), plots_index(listed, records));
  return files;
}

}  // namespace longca
