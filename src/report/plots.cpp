#include "report/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "report/gnuplot.h"
#include "report/view.h"

namespace longca {
namespace {

constexpr std::array<const char*, 3> kSuffixes = {".png", ".svg", ".pdf"};
constexpr std::array<const char*, 10> kColors = {"#2f6fbb", "#e08a3c", "#3c9d6b", "#b8527f",
                                                 "#8468b8", "#c2a02e", "#45a3b5", "#c4534a",
                                                 "#7a8290", "#6f7f35"};
constexpr int kPanelWidth = 300;
constexpr int kPanelHeight = 220;
constexpr int kMaxColumns = 4;
constexpr int kHeadHeight = 76;      ///< title and key
constexpr double kGroupWidth = 0.8;  ///< of the distance between two lengths

/// The groups of one mask, lengths ascending: one panel of a figure.
struct Panel {
  std::string title;
  std::vector<const ViewGroup*> groups;
};

struct Figure {
  Pass pass;
  std::string title;
  std::vector<Panel> panels;
  std::vector<std::string> kernels;
  RateUnit unit;
  double largest = 0;  ///< rate, in the unit
  std::vector<StatusCode> marks;
};

std::optional<double> rate_of(const Record* record, const RateUnit& unit) {
  const auto rate = metric_of(record, "tflops");
  if (!rate || !record->status.ok()) return std::nullopt;
  return *rate * unit.per_tflops;
}

std::string panel_title(const ViewGroup& group) {
  if (group.setting.empty()) return group.mask;
  return fmt::format("{} ({})", group.mask, join_axes(group.setting, ", "));
}

Figure make_figure(const View& view, const ViewSection& section, Pass pass) {
  Figure figure{pass, fmt::format("{} pass", to_string(pass)), {}, {}, view.unit, 0, {}};
  for (const AxisTexts* axes : {&view.common, &section.setting}) {
    if (!axes->empty()) figure.title += " · " + join_axes(*axes, " · ");
  }
  std::vector<const Record*> records;
  for (const ViewGroup& group : section.groups) {
    const auto has_pass = [&](const ViewRow& row) { return row.pass(pass) != nullptr; };
    if (std::none_of(group.rows.begin(), group.rows.end(), has_pass)) continue;
    const std::string title = panel_title(group);
    if (figure.panels.empty() || figure.panels.back().title != title) {
      figure.panels.push_back({title, {}});
    }
    figure.panels.back().groups.push_back(&group);
    for (const ViewRow& row : group.rows) records.push_back(row.pass(pass));
  }
  std::erase(records, nullptr);
  for (const std::string& kernel : view.kernels) {
    const auto is_kernel = [&](const Record* record) { return record->c.kernel == kernel; };
    if (std::any_of(records.begin(), records.end(), is_kernel)) figure.kernels.push_back(kernel);
  }
  for (const StatusCode code : marked_statuses()) {
    const auto has_code = [&](const Record* record) { return record->status.code == code; };
    if (std::any_of(records.begin(), records.end(), has_code)) figure.marks.push_back(code);
  }
  for (const Record* record : records) {
    figure.largest = std::max(figure.largest, rate_of(record, view.unit).value_or(0));
  }
  return figure;
}

const Record* find_record(const ViewGroup& group, const std::string& kernel, Pass pass) {
  for (const ViewRow& row : group.rows) {
    if (row.kernel == kernel) return row.pass(pass);
  }
  return nullptr;
}

/// Bars ("x height") and marks ("x letter") of one kernel in one panel.
struct Series {
  std::string bars;
  std::string marks;
};

Series series_of(const Figure& figure, const Panel& panel, std::size_t kernel) {
  Series series;
  const double bar = kGroupWidth / static_cast<double>(figure.kernels.size());
  for (std::size_t i = 0; i < panel.groups.size(); ++i) {
    const Record* record = find_record(*panel.groups[i], figure.kernels[kernel], figure.pass);
    if (record == nullptr) continue;
    const double x =
        static_cast<double>(i) - kGroupWidth / 2 + bar * (static_cast<double>(kernel) + 0.5);
    if (const auto rate = rate_of(record, figure.unit)) {
      series.bars += fmt::format("{:.4f} {:.6g}\n", x, *rate);
    } else {
      series.marks += fmt::format("{:.4f} {}\n", x, status_mark(record->status.code));
    }
  }
  return series;
}

/// One panel: a bar per kernel at each length.
std::string panel_script(const Figure& figure, const Panel& panel, bool labels_y) {
  std::string data;
  std::string plot = "plot NaN notitle";
  const double bar = kGroupWidth / static_cast<double>(figure.kernels.size());
  for (std::size_t k = 0; k < figure.kernels.size(); ++k) {
    const Series series = series_of(figure, panel, k);
    data += fmt::format("$bars{0} << EOD\n{1}EOD\n$marks{0} << EOD\n{2}EOD\n", k, series.bars,
                        series.marks);
    const char* color = kColors[k % kColors.size()];
    if (!series.bars.empty()) {
      plot += fmt::format(", $bars{} using 1:2:({:.4f}) with boxes lc rgb '{}' notitle", k,
                          bar * 0.92, color);
    }
    if (!series.marks.empty()) {
      plot += fmt::format(", $marks{} using 1:(0):2 with labels offset 0,0.5 tc rgb '{}' notitle",
                          k, color);
    }
  }
  std::string tics;
  for (std::size_t i = 0; i < panel.groups.size(); ++i) {
    tics += fmt::format("{}{} {}", i == 0 ? "" : ", ",
                        gnuplot_quoted(format_tokens(panel.groups[i]->tokens)), i);
  }
  return fmt::format(
      "{}set title {}\nset ylabel {}\nset xrange [-0.6:{:.1f}]\nset xtics ({})\n{}\n", data,
      gnuplot_quoted(panel.title), gnuplot_quoted(labels_y ? std::string(figure.unit.name) : ""),
      static_cast<double>(panel.groups.size()) - 0.4, tics, plot);
}

/// The key above the panels: a coloured square per kernel, and what the letters mean.
std::string key_script(const Figure& figure, int width, int height) {
  std::string script;
  const double y = 1 - 46.0 / height;
  double x = 20.0 / width;
  const auto add = [&](const std::string& text, double pixels) {
    script += fmt::format("set label {} at screen {:.4f},{:.4f} left front\n", gnuplot_quoted(text),
                          x, y);
    x += pixels / width;
  };
  constexpr double kLetter = 7.5;
  for (std::size_t k = 0; k < figure.kernels.size(); ++k) {
    script += fmt::format(
        "set object rectangle from screen {:.4f},{:.4f} to screen {:.4f},{:.4f} fc rgb '{}' fs "
        "solid "
        "noborder\n",
        x, y - 5.0 / height, x + 12.0 / width, y + 5.0 / height, kColors[k % kColors.size()]);
    x += 18.0 / width;
    add(figure.kernels[k], static_cast<double>(figure.kernels[k].size()) * kLetter + 22);
  }
  for (const StatusCode code : figure.marks) {
    const std::string word =
        code == StatusCode::oom ? "out of memory" : std::string(to_string(code));
    const std::string text = fmt::format("{} {}", status_mark(code), word);
    add(text, static_cast<double>(text.size()) * kLetter + 18);
  }
  return script;
}

std::string figure_script(const Figure& figure, const std::filesystem::path& file) {
  const int panels = static_cast<int>(figure.panels.size());
  const int columns = std::min(panels, kMaxColumns);
  const int rows = (panels + columns - 1) / columns;
  // The key and the title need room even above a single panel.
  const int width = std::max(columns * kPanelWidth, 2 * kPanelWidth + 100);
  const int height = rows * kPanelHeight + kHeadHeight;
  std::string script = gnuplot_output(file, width, height);
  script += fmt::format(
      "set multiplot\nset style fill solid noborder\nset border 3 lc rgb '#808080'\n"
      "set tics nomirror scale 0.4\nset grid ytics lc rgb '#e0e0e0' lt 1 lw 0.6\nunset key\n"
      "set yrange [0:{:.6g}]\nset ytics autofreq\n",
      figure.largest > 0 ? figure.largest * 1.1 : 1.0);
  const std::string key =
      fmt::format("set label {} at screen {:.4f},{:.4f} left front\n", gnuplot_quoted(figure.title),
                  20.0 / width, 1 - 20.0 / height) +
      key_script(figure, width, height);
  const double panel_height = static_cast<double>(kPanelHeight) / height;
  for (int i = 0; i < panels; ++i) {
    // The key is drawn with the first panel, and only once.
    script += i == 0 ? key : i == 1 ? "unset label\nunset object\n" : "";
    script += fmt::format(
        "set origin {:.4f},{:.4f}\nset size {:.4f},{:.4f}\n",
        static_cast<double>(i % columns) / columns,
        1 - static_cast<double>(kHeadHeight) / height - (i / columns + 1) * panel_height,
        1.0 / columns, panel_height);
    script += panel_script(figure, figure.panels[static_cast<std::size_t>(i)], i % columns == 0);
  }
  return script + "unset multiplot\n";
}

/// Letters, digits and dashes of a setting, for a file name.
std::string file_stem(Pass pass, const AxisTexts& setting) {
  std::string stem(to_string(pass));
  for (const auto& [name, value] : setting) stem += fmt::format("-{}-{}", name, value);
  std::replace_if(
      stem.begin(), stem.end(),
      [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '_'; }, '-');
  return stem;
}

}  // namespace

std::vector<std::filesystem::path> write_plots(std::span<const Record> records,
                                               const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw_input_error("cannot make the folder {}: {}", directory.string(), error.message());
  const std::vector<Record> latest = latest_records(records);
  const View view = make_view(latest);
  std::vector<std::filesystem::path> files;
  for (const ViewSection& section : view.sections) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const Figure figure = make_figure(view, section, pass);
      if (figure.panels.empty()) continue;
      for (const char* suffix : kSuffixes) {
        files.push_back(directory / (file_stem(pass, section.setting) + suffix));
        run_gnuplot(figure_script(figure, files.back()));
      }
    }
  }
  return files;
}

}  // namespace longca
