#include "report/plots.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "report/figure.h"
#include "report/gnuplot.h"
#include "report/plot_head.h"
#include "report/ranks_plots.h"
#include "report/sparse_plots.h"

namespace longca {
namespace {

// In pixels of a 96 dpi screen.
constexpr int kPanelWidth = 300;
constexpr int kLengthWidth = 44;  // what the name of a length needs
constexpr int kPanelHeight = 220;
constexpr int kMinWidth = 700;
constexpr int kMaxWidth = 1500;
constexpr double kMarkWidth = 8;
constexpr int kMargin = 20;
constexpr int kMaxColumns = 4;

/// Wide enough for the names of the lengths.
int panel_width(const Figure& figure) {
  std::size_t lengths = 1;
  for (const FigurePanel& panel : figure.panels) lengths = std::max(lengths, panel.tokens.size());
  return std::max(kPanelWidth, static_cast<int>(lengths) * kLengthWidth + 2 * kMargin);
}

/// Whether a letter fits into the place of a bar.
bool has_room_for_marks(const FigurePanel& panel, int width) {
  const auto lengths = static_cast<double>(panel.tokens.size());
  return panel.bar_width * (width - 3 * kMargin) / lengths >= kMarkWidth;
}

/// The pass, the axes that all cells share, the key of colours and marks.
PlotHead head_of(const Figure& figure, int width) {
  PlotHead head(width);
  head.add_line({{fmt::format("{} pass", figure.pass == Pass::forward ? "Forward" : "Backward")}});
  std::vector<PlotHead::Item> axes;
  for (const auto& [name, value] : figure.setting) axes.push_back({name + ' ' + value});
  head.add_line(axes);
  std::vector<PlotHead::Item> key;
  for (std::size_t k = 0; k < figure.kernels.size(); ++k) {
    if (figure.shows(k)) key.push_back({figure.kernels[k], plot_color(k)});
  }
  for (const StatusCode code : marked_statuses()) {
    if (figure.shows(code)) {
      key.push_back({fmt::format("{} {}", status_mark(code), status_words(code))});
    }
  }
  head.add_line(key);
  return head;
}

/// The data of one kernel in one panel: bars ("x height") and marks ("x letter").
struct Series {
  std::string bars;
  std::string marks;
};

Series series_of(const FigurePanel& panel, std::size_t kernel) {
  Series series;
  for (const FigureBar& bar : panel.bars) {
    if (bar.kernel != kernel) continue;
    if (bar.rate) {
      series.bars += fmt::format("{:.4f} {:.6g}\n", bar.x, *bar.rate);
    } else {
      series.marks += fmt::format("{:.4f} {}\n", bar.x, status_mark(bar.status));
    }
  }
  return series;
}

std::string length_tics(const FigurePanel& panel) {
  std::string tics;
  for (std::size_t i = 0; i < panel.tokens.size(); ++i) {
    tics += fmt::format("{}{} {}", i == 0 ? "" : ", ",
                        gnuplot_quoted(format_tokens(panel.tokens[i])), i);
  }
  return tics;
}

/// The kernels that have no number, with their marks.
std::string absent_text(const Figure& figure, const FigurePanel& panel) {
  if (panel.absent.empty()) return "";
  std::string text = "no number:";
  for (const FigureAbsence& absence : panel.absent) {
    text += fmt::format("{} {} ", &absence == &panel.absent.front() ? "" : ",",
                        figure.kernels[absence.kernel]);
    for (const StatusCode status : absence.statuses) text += status_mark(status);
  }
  return text;
}

std::string panel_script(const Figure& figure, const FigurePanel& panel, int width, bool labels_y) {
  std::string data;
  std::string plot = "plot NaN notitle";
  for (std::size_t k = 0; k < figure.kernels.size(); ++k) {
    const Series series = series_of(panel, k);
    if (!series.bars.empty()) {
      data += fmt::format("$bars{} << EOD\n{}EOD\n", k, series.bars);
      plot += fmt::format(", $bars{} using 1:2:({:.4f}) with boxes lc rgb '{}' notitle", k,
                          panel.bar_width * 0.92, plot_color(k));
    }
    if (!series.marks.empty() && has_room_for_marks(panel, width)) {
      data += fmt::format("$marks{} << EOD\n{}EOD\n", k, series.marks);
      plot += fmt::format(", $marks{} using 1:(0):2 with labels offset 0,0.5 tc rgb '{}' notitle",
                          k, plot_color(k));
    }
  }
  return fmt::format("{}{}set ylabel {}\nset xrange [-0.6:{:.1f}]\nset xtics ({})\n{}\n", data,
                     plot_title(panel.title, absent_text(figure, panel), width),
                     gnuplot_quoted(labels_y ? figure.unit.name : ""),
                     static_cast<double>(panel.tokens.size()) - 0.4, length_tics(panel), plot);
}

void draw_figure(const Figure& figure, const std::filesystem::path& file) {
  const int panels = static_cast<int>(figure.panels.size());
  const int wide = panel_width(figure);
  const int columns = std::clamp(kMaxWidth / wide, 1, std::min(panels, kMaxColumns));
  const int rows = (panels + columns - 1) / columns;
  const int width = std::max(columns * wide, kMinWidth);
  const PlotHead head = head_of(figure, width);
  const int height = rows * kPanelHeight + head.height();
  const double largest = figure.largest_rate();
  std::string script = fmt::format(
      "set multiplot\nset style fill solid noborder\nset border 3 lc rgb '#808080'\n"
      "set tics nomirror scale 0.4\nset grid ytics lc rgb '#e0e0e0' lt 1 lw 0.6\nunset key\n"
      "set yrange [0:{:.6g}]\nset ytics 0,{:.6g}\nset lmargin 8\nset rmargin 1\n",
      largest > 0 ? largest * 1.1 : 1.0, plot_tic_step(largest));
  for (int i = 0; i < panels; ++i) {
    // The head is drawn with the first panel, and only once.
    script += i == 0 ? head.script(height) : i == 1 ? "unset label\nunset object\n" : "";
    const double bottom = static_cast<double>((rows - 1 - i / columns) * kPanelHeight) / height;
    script += fmt::format("set origin {:.4f},{:.4f}\nset size {:.4f},{:.4f}\n",
                          static_cast<double>(i % columns) / columns, bottom, 1.0 / columns,
                          static_cast<double>(kPanelHeight) / height);
    script += panel_script(figure, figure.panels[static_cast<std::size_t>(i)], width / columns,
                           i % columns == 0);
  }
  draw_with_gnuplot(file, width, height, script + "unset multiplot\n");
}

std::string file_stem(const Figure& figure) {
  return plot_stem(std::string(to_string(figure.pass)), figure.name);
}

}  // namespace

std::vector<std::filesystem::path> write_plots(std::span<const Record> records,
                                               const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    throw_input_error("cannot make the folder {}: {}", directory.string(), error.message());
  }
  const SplitRecords split = split_records(records);
  std::vector<std::filesystem::path> files;
  for (const Figure& figure : make_figures(make_view(split.single))) {
    for (const char* suffix : kPlotSuffixes) {
      files.push_back(directory / (file_stem(figure) + suffix));
      draw_figure(figure, files.back());
    }
  }
  for (auto& file : write_sparse_plots(compare_with_dense(split.single), directory)) {
    files.push_back(std::move(file));
  }
  for (auto& file : write_ranks_plots(split, directory)) files.push_back(std::move(file));
  return files;
}

}  // namespace longca
