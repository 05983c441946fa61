#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "report/gnuplot.h"
#include "report/plot_parts.h"
#include "report/plots.h"
#include "report/ranks_figure.h"

namespace longca {
namespace {

// In pixels of a 96 dpi screen.
constexpr int kPanelWidth = 430;
constexpr int kPanelHeight = 290;
constexpr int kMinWidth = 760;
constexpr int kMaxColumns = 3;

enum class Kind { tflops, exposed, error };

struct KindText {
  const char* file;
  const char* title;
};

KindText text_of(Kind kind) {
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

/// The value of a cell in a figure of the kind.
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

/// A figure of one kind, panel by panel.
class KindDrawer {
 public:
  KindDrawer(const RanksFigure& figure, Kind kind, const Baselines& baselines)
      : figure_(figure),
        kind_(kind),
        baselines_(baselines),
        legend_(figure,
                [&](const Record& cell) { return value_of(kind, cell, figure.unit).has_value(); }) {
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
    const int width = std::max(columns * kPanelWidth, kMinWidth);
    const std::string settings = fmt::format(
        "set yrange [0:{:.6g}]\nset ytics 0,{:.6g}\nset format y '{}'\nset lmargin 9\n"
        "set rmargin 2\n",
        has_values() ? largest_ * 1.08 : 1.0, plot_tic_step(largest_),
        kind_ == Kind::error ? "%.1e" : "%g");
    draw_panels(
        file, {panels, columns, width, kPanelHeight}, make_head(width), settings, [&](int i) {
          return panel_script(figure_.panels[static_cast<std::size_t>(i)], i % columns == 0);
        });
  }

 private:
  double baseline_of(const Record& record) const {
    return baselines_.of(record.c).tflops * figure_.unit.per_tflops;
  }

  PlotHead make_head(int width) const {
    PlotHead head(width);
    head.add_line({{fmt::format("{}, {} pass: {}", figure_.mask, to_string(figure_.pass),
                                text_of(kind_).title)}});
    head.add_axes(figure_.setting);
    std::vector<PlotHead::Item> key;
    for (const RanksLegend::Entry& entry : legend_.entries()) key.push_back(key_item(entry));
    if (kind_ == Kind::tflops) {
      for (const std::string& name : baseline_names()) key.push_back({name, kBaselineColor, 2});
    }
    if (kind_ == Kind::tflops) {
      for (auto& item : mark_items([&](StatusCode code) { return shows(code); })) {
        key.push_back(std::move(item));
      }
    }
    head.add_line(key);
    return head;
  }

  bool has_bars(const RanksPanel& panel) const {
    return kind_ == Kind::exposed || panel.ranks.size() == 1;
  }

  /// Shows a square for bars and a stroke for lines.
  PlotHead::Item key_item(const RanksLegend::Entry& entry) const {
    const auto bars = std::count_if(figure_.panels.begin(), figure_.panels.end(),
                                    [&](const RanksPanel& panel) { return has_bars(panel); });
    const bool has_lines = bars < std::ssize(figure_.panels);
    PlotHead::Item item{entry.text, entry.scheme ? plot_color(*entry.scheme) : kNeutralColor};
    const std::size_t look = entry.look.value_or(0);
    item.dash = has_lines ? dash_of_look(look) : 0;
    item.has_square = bars > 0;
    item.pattern = pattern_of_look(look);
    return item;
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
    PlotScript script;
    // Baselines are drawn over bars, which would hide them, but under lines.
    if (!has_bars(panel)) add_baselines(panel, script);
    for (const DrawnSeries& series : drawn_series(panel)) {
      if (kind_ == Kind::exposed) {
        add_stacks(series, script);
      } else {
        has_bars(panel) ? add_bars(series, script) : add_line(series, script);
      }
    }
    if (has_bars(panel)) add_baselines(panel, script);
    std::string tics;
    for (std::size_t i = 0; i < panel.ranks.size(); ++i) {
      tics += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", panel.ranks[i], i);
    }
    const int columns = std::min(static_cast<int>(figure_.panels.size()), kMaxColumns);
    return fmt::format(
        "{}{}set ylabel {}\nset xlabel 'ranks'\nset xrange [-0.5:{:.1f}]\nset xtics ({})\n{}\n",
        script.data,
        plot_title(panel.title, kind_ == Kind::tflops ? absent_text(panel) : "",
                   std::max(kPanelWidth, kMinWidth / columns)),
        gnuplot_quoted(labels_y ? unit_name() : ""), static_cast<double>(panel.ranks.size()) - 0.5,
        tics, script.plot);
  }

  std::string unit_name() const {
    if (kind_ == Kind::error) return "relative error";
    return kind_ == Kind::exposed ? "ms" : fmt::format("{} per rank", figure_.unit.name);
  }

  std::vector<DrawnSeries> drawn_series(const RanksPanel& panel) const {
    std::vector<DrawnSeries> drawn;
    for (const RanksSeries& series : panel.series) {
      std::vector<PlotPoint> points = points_of(panel, series);
      if (points.empty()) continue;
      drawn.push_back({.number = drawn.size(),
                       .look = legend_.look_of(series),
                       .color = plot_color(series.scheme),
                       .points = std::move(points)});
    }
    for (DrawnSeries& series : drawn) series.of = drawn.size();
    return drawn;
  }

  std::vector<PlotPoint> points_of(const RanksPanel& panel, const RanksSeries& series) const {
    std::vector<PlotPoint> points;
    for (const Record* cell : series.cells) {
      const auto value = value_of(kind_, *cell, figure_.unit);
      if (!value) continue;
      const double part =
          kind_ == Kind::exposed ? std::min(*value, *metric_of(cell, "compute_ms")) : *value;
      points.push_back({panel.x_of(*cell), *value, part});
    }
    return points;
  }

  /// Adds a grey line per name and kernel to figures of rates.
  void add_baselines(const RanksPanel& panel, PlotScript& script) const {
    if (kind_ != Kind::tflops) return;
    std::map<std::string, std::map<double, double>> lines;
    for (const RanksSeries& series : panel.series) {
      for (const Record* cell : series.cells) {
        const Baseline baseline = baselines_.of(cell->c);
        if (baseline.tflops <= 0) continue;
        lines[baseline.name + cell->c.kernel][panel.x_of(*cell)] = baseline_of(*cell);
      }
    }
    std::size_t number = 0;
    for (const auto& [name, rates] : lines) {
      std::vector<PlotPoint> points;
      for (const auto& [x, rate] : rates) points.push_back({x, rate});
      add_baseline(number++, points, kBaselineColor, panel.ranks.size() == 1, script);
    }
  }

  static constexpr const char* kBaselineColor = "#606060";
  static constexpr const char* kNeutralColor = "#808080";  // of entries for all schemes

  const RanksFigure& figure_;
  Kind kind_;
  const Baselines& baselines_;
  RanksLegend legend_;
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
          fmt::format("cp-{}-{}-{}", figure.mask, to_string(figure.pass), text_of(kind).file),
          figure.name);
      draw_all_formats(
          directory, stem, [&](const auto& file) { drawer.draw(file); }, files);
    }
  }
  return files;
}

}  // namespace longca
