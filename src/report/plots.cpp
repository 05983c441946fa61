#include "report/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/output_file.h"
#include "report/gnuplot.h"
#include "report/plot_parts.h"

namespace longca {
namespace {

constexpr double kGroupWidth = 0.8;         ///< of the distance between two lengths
constexpr std::size_t kMaxMarkedBars = 24;  ///< of a panel with marks between its bars

template <typename Matches>
bool any_bar(const Figure& figure, Matches matches) {
  return std::any_of(figure.panels.begin(), figure.panels.end(), [&](const FigurePanel& panel) {
    return std::any_of(panel.bars.begin(), panel.bars.end(), matches);
  });
}

void add_group(Figure& figure, FigurePanel& panel, const ViewGroup& group) {
  const auto x = static_cast<double>(panel.tokens.size());
  for (const ViewRow& row : group.rows) {
    const Record* record = row.pass(figure.pass);
    if (record == nullptr) continue;
    const auto kernel = std::find(figure.kernels.begin(), figure.kernels.end(), row.kernel);
    FigureBar bar{static_cast<std::size_t>(kernel - figure.kernels.begin()), x, std::nullopt,
                  record->status.code};
    const auto rate = metric_of(record, "tflops");
    if (rate && record->status.ok()) bar.rate = *rate * figure.unit.per_tflops;
    panel.bars.push_back(bar);
  }
  panel.tokens.push_back(group.tokens);
}

/// Removes the bars of kernels without any number from a panel of many bars, and lists them
/// instead.
void list_absent_kernels(FigurePanel& panel) {
  std::map<std::size_t, std::set<StatusCode>> statuses;  // by kernel
  std::set<std::size_t> present;
  for (const FigureBar& bar : panel.bars) {
    statuses[bar.kernel].insert(bar.status);
    if (bar.rate) present.insert(bar.kernel);
  }
  if (statuses.size() * panel.tokens.size() <= kMaxMarkedBars) return;
  for (const auto& [kernel, of_kernel] : statuses) {
    if (!present.contains(kernel)) panel.absent.push_back({kernel, of_kernel});
  }
  std::erase_if(panel.bars, [&](const FigureBar& bar) { return !present.contains(bar.kernel); });
}

/// Places the bars of each length side by side; kernels without bars in the panel leave no gap.
void spread_bars(FigurePanel& panel) {
  std::set<std::size_t> kernels;
  for (const FigureBar& bar : panel.bars) kernels.insert(bar.kernel);
  panel.bar_width = kGroupWidth / static_cast<double>(std::max<std::size_t>(kernels.size(), 1));
  for (FigureBar& bar : panel.bars) {
    const auto place = std::distance(kernels.begin(), kernels.find(bar.kernel));
    bar.x += (static_cast<double>(place) + 0.5) * panel.bar_width - kGroupWidth / 2;
  }
}

Figure make_figure(const View& view, const ViewSection& section, Pass pass) {
  Figure figure{pass, section.setting, section.setting, view.unit, view.kernels, {}};
  figure.setting.insert(figure.setting.end(), view.common.begin(), view.common.end());
  for (const ViewGroup& group : section.groups) {
    const auto has_pass = [&](const ViewRow& row) { return row.pass(pass) != nullptr; };
    if (std::none_of(group.rows.begin(), group.rows.end(), has_pass)) continue;
    const std::string title = group.title();
    if (figure.panels.empty() || figure.panels.back().title != title) {
      figure.panels.push_back({.title = title});
    }
    add_group(figure, figure.panels.back(), group);
  }
  for (FigurePanel& panel : figure.panels) {
    list_absent_kernels(panel);
    spread_bars(panel);
  }
  return figure;
}

// In pixels of a 96 dpi screen.
constexpr int kPanelWidth = 300;
constexpr int kLengthWidth = 44;  // of a length's label
constexpr int kPanelHeight = 220;
constexpr int kMinWidth = 700;
constexpr int kMaxWidth = 1500;
constexpr double kMarkWidth = 8;
constexpr int kMargin = 20;
constexpr int kMaxColumns = 4;

/// Wide enough for the labels of the lengths.
int panel_width(const Figure& figure) {
  std::size_t lengths = 1;
  for (const FigurePanel& panel : figure.panels) lengths = std::max(lengths, panel.tokens.size());
  return std::max(kPanelWidth, static_cast<int>(lengths) * kLengthWidth + 2 * kMargin);
}

/// Whether a bar is wide enough for a letter in its place.
bool fits_marks(const FigurePanel& panel, int width) {
  const auto lengths = static_cast<double>(panel.tokens.size());
  return panel.bar_width * (width - 3 * kMargin) / lengths >= kMarkWidth;
}

/// The pass, the axes that all cells share, and the key of colours and marks.
PlotHead head_of(const Figure& figure, int width) {
  PlotHead head(width);
  head.add_line({{fmt::format("{} pass", figure.pass == Pass::forward ? "Forward" : "Backward")}});
  head.add_axes(figure.setting);
  std::vector<PlotHead::Item> key;
  for (std::size_t k = 0; k < figure.kernels.size(); ++k) {
    if (figure.shows(k)) key.push_back({figure.kernels[k], plot_color(k)});
  }
  for (auto& item : mark_items([&](StatusCode code) { return figure.shows(code); })) {
    key.push_back(std::move(item));
  }
  head.add_line(key);
  return head;
}

/// The gnuplot data of one kernel in one panel: bars ("x height") and marks ("x letter").
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
std::string absent_kernels(const Figure& figure, const FigurePanel& panel) {
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
    if (!series.marks.empty() && fits_marks(panel, width)) {
      data += fmt::format("$marks{} << EOD\n{}EOD\n", k, series.marks);
      plot += fmt::format(", $marks{} using 1:(0):2 with labels offset 0,0.5 tc rgb '{}' notitle",
                          k, plot_color(k));
    }
  }
  return fmt::format("{}{}set ylabel {}\nset xrange [-0.6:{:.1f}]\nset xtics ({})\n{}\n", data,
                     plot_title(panel.title, absent_kernels(figure, panel), width),
                     gnuplot_quoted(labels_y ? figure.unit.name : ""),
                     static_cast<double>(panel.tokens.size()) - 0.4, length_tics(panel), plot);
}

void draw_figure(const Figure& figure, const std::filesystem::path& file) {
  const int panels = static_cast<int>(figure.panels.size());
  const int wide = panel_width(figure);
  const int columns = std::clamp(kMaxWidth / wide, 1, std::min(panels, kMaxColumns));
  const int width = std::max(columns * wide, kMinWidth);
  const double largest = figure.largest_rate();
  const std::string settings = fmt::format(
      "set style fill solid noborder\nset yrange [0:{:.6g}]\nset ytics 0,{:.6g}\n"
      "set lmargin 8\nset rmargin 1\n",
      largest > 0 ? largest * 1.1 : 1.0, plot_tic_step(largest));
  draw_panels(file, {panels, columns, width, kPanelHeight}, head_of(figure, width), settings,
              [&](int i) {
                return panel_script(figure, figure.panels[static_cast<std::size_t>(i)],
                                    width / columns, i % columns == 0);
              });
}

}  // namespace

double Figure::largest_rate() const {
  double largest = 0;
  for (const FigurePanel& panel : panels) {
    for (const FigureBar& bar : panel.bars) largest = std::max(largest, bar.rate.value_or(0));
  }
  return largest;
}

bool Figure::shows(std::size_t kernel) const {
  return any_bar(*this, [=](const FigureBar& bar) { return bar.kernel == kernel; });
}

bool Figure::shows(StatusCode status) const {
  const auto is_absent_with = [=](const FigureAbsence& a) { return a.statuses.contains(status); };
  return any_bar(*this, [=](const FigureBar& bar) { return bar.status == status; }) ||
         std::any_of(panels.begin(), panels.end(), [&](const FigurePanel& panel) {
           return std::any_of(panel.absent.begin(), panel.absent.end(), is_absent_with);
         });
}

std::vector<Figure> make_figures(const View& view) {
  std::vector<Figure> figures;
  for (const ViewSection& section : view.sections) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      Figure figure = make_figure(view, section, pass);
      if (!figure.panels.empty()) figures.push_back(std::move(figure));
    }
  }
  return figures;
}

std::vector<std::filesystem::path> write_plots(std::span<const Record> records,
                                               const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw_file_error("make the folder", directory, error.value());
  const SplitRecords split = split_records(records);
  std::vector<std::filesystem::path> files;
  for (const Figure& figure : make_figures(make_view(split.single))) {
    draw_all_formats(
        directory, plot_stem(std::string(to_string(figure.pass)), figure.name),
        [&](const auto& file) { draw_figure(figure, file); }, files);
  }
  for (auto& file : write_sparse_plots(compare_with_dense(split.single), directory)) {
    files.push_back(std::move(file));
  }
  for (auto& file : write_ranks_plots(split, directory)) files.push_back(std::move(file));
  return files;
}

}  // namespace longca
