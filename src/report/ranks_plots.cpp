#include "report/ranks_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "report/gnuplot.h"
#include "report/plot_head.h"
#include "report/ranks_figure.h"

namespace longca {
namespace {

// In pixels of a 96 dpi screen.
constexpr int kPanelWidth = 430;
constexpr int kPanelHeight = 290;
constexpr int kMinWidth = 760;
constexpr int kMaxColumns = 3;

enum class Kind { tflops, exposed, error };

struct KindWords {
  const char* file;
  const char* title;
};

KindWords words_of(Kind kind) {
  switch (kind) {
    case Kind::tflops:
      return {"tflops", "speed per rank over ranks"};
    case Kind::exposed:
      return {"exposed", "time of the steps alone and, lighter, what communication adds"};
    case Kind::error:
      return {"error", "largest relative error over ranks"};
  }
  return {"", ""};
}

/// What a figure of the kind shows of a cell.
std::optional<double> value_of(Kind kind, const Record& record, const RateUnit& unit) {
  if (!record.status.ok()) return std::nullopt;
  if (kind == Kind::error) return largest_error(&record);
  if (kind == Kind::exposed) {
    return metric_of(&record, "compute_ms") ? metric_of(&record, "time_ms") : std::nullopt;
  }
  const auto rate = metric_of(&record, "tflops");
  if (!rate) return std::nullopt;
  return *rate * unit.per_tflops;
}

/// gnuplot's dash type of the n-th variant of a scheme: solid, dashed, dotted, …
int dash_of(const RanksSeries& series) {
  return static_cast<int>(series.variant % 5) + 1;
}

int point_of(const RanksSeries& series) {
  constexpr std::array kPoints = {7, 13, 5, 9, 11};  // filled circle, diamond, square, triangles
  return kPoints[series.variant % kPoints.size()];
}

/// A figure of one kind, panel by panel.
class KindDrawer {
 public:
  KindDrawer(const RanksFigure& figure, Kind kind, const Baselines& baselines)
      : figure_(figure), kind_(kind), baselines_(baselines) {
    for (const RanksPanel& panel : figure.panels) {
      for (const RanksSeries& series : panel.series) {
        for (const Record* cell : series.cells) {
          largest_ = std::max(largest_, value_of(kind, *cell, figure.unit).value_or(0));
          if (kind == Kind::tflops) largest_ = std::max(largest_, baseline_of(*cell));
        }
      }
    }
  }

  bool has_values() const { return largest_ > 0; }

  void draw(const std::filesystem::path& file) const {
    const int panels = static_cast<int>(figure_.panels.size());
    const int columns = std::min(panels, kMaxColumns);
    const int rows = (panels + columns - 1) / columns;
    const int width = std::max(columns * kPanelWidth, kMinWidth);
    const PlotHead head = make_head(width);
    const int height = rows * kPanelHeight + head.height();
    std::string script = fmt::format(
        "set multiplot\nset border 3 lc rgb '#808080'\nset tics nomirror scale 0.4\n"
        "set grid ytics lc rgb '#e0e0e0' lt 1 lw 0.6\nunset key\nset yrange [0:{:.6g}]\n"
        "set ytics 0,{:.6g}\nset format y '{}'\nset lmargin 9\nset rmargin 2\n",
        has_values() ? largest_ * 1.08 : 1.0, plot_tic_step(largest_),
        kind_ == Kind::error ? "%.1e" : "%g");
    for (int i = 0; i < panels; ++i) {
      // The head is drawn with the first panel, and only once.
      script += i == 0   ? head.script(height)
                : i == 1 ? "unset label\nunset object\nunset arrow\n"
                         : "";
      const int bottom = (rows - 1 - i / columns) * kPanelHeight;
      script += fmt::format("set origin {:.4f},{:.4f}\nset size {:.4f},{:.4f}\n",
                            static_cast<double>(i % columns) / columns,
                            static_cast<double>(bottom) / height, 1.0 / columns,
                            static_cast<double>(kPanelHeight) / height);
      script += panel_script(figure_.panels[static_cast<std::size_t>(i)], i % columns == 0);
    }
    draw_with_gnuplot(file, width, height, script + "unset multiplot\n");
  }

 private:
  double baseline_of(const Record& record) const {
    return baselines_.of(record.c).tflops * figure_.unit.per_tflops;
  }

  PlotHead make_head(int width) const {
    PlotHead head(width);
    head.add_line({{fmt::format("{}, {} pass: {}", figure_.mask, to_string(figure_.pass),
                                words_of(kind_).title)}});
    std::vector<PlotHead::Item> axes;
    for (const auto& [name, value] : figure_.setting)
      axes.push_back({fmt::format("{} {}", name, value)});
    head.add_line(axes);
    std::vector<PlotHead::Item> key;
    std::set<std::string> names;
    for (const RanksPanel& panel : figure_.panels) {
      for (const RanksSeries& series : panel.series) {
        if (!names.insert(series.name).second) continue;
        key.push_back({series.name, plot_color(series.scheme),
                       kind_ == Kind::exposed && series.variant == 0 ? 0 : dash_of(series)});
      }
    }
    if (kind_ == Kind::tflops) {
      for (const std::string& name : baseline_names()) key.push_back({name, kBaselineColor, 2});
    }
    for (const StatusCode code : marked_statuses()) {
      if (kind_ == Kind::tflops && shows(code)) {
        key.push_back({fmt::format("{} {}", status_mark(code), status_words(code))});
      }
    }
    head.add_line(key);
    return head;
  }

  template <typename Visit>
  void for_each_cell(Visit visit) const {
    for (const RanksPanel& panel : figure_.panels) {
      for (const RanksSeries& series : panel.series) {
        for (const Record* cell : series.cells) visit(*cell);
      }
    }
  }

  bool shows(StatusCode code) const {
    bool found = false;
    for_each_cell([&](const Record& cell) { found = found || cell.status.code == code; });
    return found;
  }

  std::set<std::string> baseline_names() const {
    std::set<std::string> names;
    for_each_cell([&](const Record& cell) { names.insert(baselines_.of(cell.c).name); });
    names.erase("");
    return names;
  }

  std::string panel_script(const RanksPanel& panel, bool labels_y) const {
    std::string data;
    std::string plot = "plot NaN notitle";
    if (kind_ == Kind::tflops) add_baselines(panel, data, plot);
    for (std::size_t s = 0; s < panel.series.size(); ++s) {
      kind_ == Kind::exposed ? add_bars(panel, s, data, plot) : add_line(panel, s, data, plot);
    }
    std::string tics;
    for (std::size_t i = 0; i < panel.ranks.size(); ++i) {
      tics += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", panel.ranks[i], i);
    }
    const std::string absent = kind_ == Kind::tflops ? absent_text(panel) : "";
    constexpr int kTag = 999;  // one label, replaced from panel to panel
    return fmt::format(
        "{}set label {} {} at graph 0.5,1.03 center font ',7' tc rgb '#606060'\n"
        "set title {} offset 0,{}\nset ylabel {}\nset xlabel 'ranks'\n"
        "set xrange [-0.5:{:.1f}]\nset xtics ({})\n{}\n",
        data, kTag, gnuplot_quoted(absent), gnuplot_quoted(panel.title), absent.empty() ? 0 : 0.6,
        gnuplot_quoted(labels_y ? unit_name() : ""), static_cast<double>(panel.ranks.size()) - 0.5,
        tics, plot);
  }

  std::string unit_name() const {
    if (kind_ == Kind::error) return "relative error";
    return kind_ == Kind::exposed ? "ms" : fmt::format("{} per rank", figure_.unit.name);
  }

  void add_line(const RanksPanel& panel, std::size_t s, std::string& data,
                std::string& plot) const {
    const RanksSeries& series = panel.series[s];
    std::string points;
    for (const Record* cell : series.cells) {
      if (const auto value = value_of(kind_, *cell, figure_.unit)) {
        points += fmt::format("{} {:.6g}\n", panel.place_of(*cell), *value);
      }
    }
    if (points.empty()) return;
    if (panel.ranks.size() == 1) return add_single_bar(panel, s, data, plot);
    data += fmt::format("$line{} << EOD\n{}EOD\n", s, points);
    plot += fmt::format(
        ", $line{} using 1:2 with linespoints lc rgb '{}' lw 2 dt {} pt {} ps 0.9"
        " notitle",
        s, plot_color(series.scheme), dash_of(series), point_of(series));
  }

  static double bar_width(const RanksPanel& panel) {
    return 0.84 / static_cast<double>(panel.series.size());
  }

  static double bar_place(const RanksPanel& panel, std::size_t s, const Record& cell) {
    return panel.place_of(cell) + (static_cast<double>(s) + 0.5) * bar_width(panel) - 0.42;
  }

  static std::string fill_of(const RanksSeries& series) {
    return series.variant == 0 ? "solid" : fmt::format("pattern {}", 3 + series.variant);
  }

  /// In the place of a line over one number of ranks.
  void add_single_bar(const RanksPanel& panel, std::size_t s, std::string& data,
                      std::string& plot) const {
    const RanksSeries& series = panel.series[s];
    const Record& cell = *series.cells.front();
    data += fmt::format("$bar{} << EOD\n{:.4f} {:.6g}\nEOD\n", s, bar_place(panel, s, cell),
                        *value_of(kind_, cell, figure_.unit));
    plot += fmt::format(", $bar{} using 1:2:({:.4f}) with boxes lc rgb '{}' fs {} notitle", s,
                        bar_width(panel) * 0.9, plot_color(series.scheme), fill_of(series));
  }

  /// The whole time, lighter, and over it the time of the steps alone.
  void add_bars(const RanksPanel& panel, std::size_t s, std::string& data,
                std::string& plot) const {
    const RanksSeries& series = panel.series[s];
    std::string bars;
    for (const Record* cell : series.cells) {
      const auto time = value_of(kind_, *cell, figure_.unit);
      if (!time) continue;
      bars += fmt::format("{:.4f} {:.6g} {:.6g}\n", bar_place(panel, s, *cell), *time,
                          std::min(*time, *metric_of(cell, "compute_ms")));
    }
    if (bars.empty()) return;
    data += fmt::format("$bars{} << EOD\n{}EOD\n", s, bars);
    plot += fmt::format(
        ", $bars{0} using 1:2:({1:.4f}) with boxes lc rgb '{2}' fs solid 0.3 notitle"
        ", $bars{0} using 1:3:({1:.4f}) with boxes lc rgb '{2}' fs {3} notitle",
        s, bar_width(panel) * 0.9, plot_color(series.scheme), fill_of(series));
  }

  /// Grey, a line per name and kernel.
  void add_baselines(const RanksPanel& panel, std::string& data, std::string& plot) const {
    std::map<std::string, std::map<double, double>> lines;
    for (const RanksSeries& series : panel.series) {
      for (const Record* cell : series.cells) {
        const Baseline baseline = baselines_.of(cell->c);
        if (baseline.tflops <= 0) continue;
        lines[baseline.name + cell->c.kernel][panel.place_of(*cell)] = baseline_of(*cell);
      }
    }
    int number = 0;
    for (const auto& [name, points] : lines) {
      data += fmt::format("$baseline{} << EOD\n", number);
      for (const auto& [x, rate] : points) data += fmt::format("{} {:.6g}\n", x, rate);
      data += "EOD\n";
      plot += fmt::format(
          ", $baseline{} using 1:2 with linespoints lc rgb '{}' lw 1.8 dt 2 pt 2 "
          "ps 0.5 notitle",
          number++, kBaselineColor);
    }
  }

  /// "no number: ulysses 8 X, 16 X".
  std::string absent_text(const RanksPanel& panel) const {
    std::string text;
    for (const RanksSeries& series : panel.series) {
      std::string of_series;
      for (const Record* cell : series.cells) {
        if (value_of(kind_, *cell, figure_.unit)) continue;
        of_series +=
            fmt::format(" {}{}", cell->c.ranks.value_or(1), status_mark(cell->status.code));
      }
      if (of_series.empty()) continue;
      text += fmt::format("{}{}{}", text.empty() ? "no number: " : ", ", series.name, of_series);
    }
    return text;
  }

  static constexpr const char* kBaselineColor = "#606060";

  const RanksFigure& figure_;
  Kind kind_;
  const Baselines& baselines_;
  double largest_ = 0;
};

}  // namespace

std::vector<std::filesystem::path> write_ranks_plots(const SplitRecords& records,
                                                     const std::filesystem::path& directory) {
  const View view = make_view(records.over_ranks);
  const Baselines baselines(records.single, records.over_ranks);
  std::vector<std::filesystem::path> files;
  for (const RanksFigure& figure : make_ranks_figures(view, records)) {
    for (const Kind kind : {Kind::tflops, Kind::exposed, Kind::error}) {
      const KindDrawer drawer(figure, kind, baselines);
      if (kind != Kind::tflops && !drawer.has_values()) continue;
      const std::string stem = plot_stem(
          fmt::format("cp-{}-{}-{}", figure.mask, to_string(figure.pass), words_of(kind).file),
          figure.name);
      for (const char* suffix : kPlotSuffixes) {
        files.push_back(directory / (stem + suffix));
        drawer.draw(files.back());
      }
    }
  }
  return files;
}

}  // namespace longca
