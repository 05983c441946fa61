#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/data/figures.h"
#include "report/data/ranking.h"
#include "report/data/series_colors.h"
#include "report/data/sparse_figures.h"

namespace longca {
namespace {

/// What a figure of lengths shows of a cell.
struct Quantity {
  std::string suffix;  ///< of the name
  std::string title;
  std::string unit;
  const char* metric;
  double factor;  ///< from the metric to the unit
  bool is_rate;   ///< shown of cells that are `ok` only

  /// Whether a cell of this status belongs in the figure. What never ran says nothing of memory.
  bool tells_of(StatusCode status) const {
    return is_rate || (status != StatusCode::unsupported && status != StatusCode::unavailable);
  }
};

Quantity memory_quantity(const View& view) {
  constexpr double kMiB = 1 << 20;
  double largest = 0;
  for (const Record* record : view.records()) {
    largest = std::max(largest, metric_of(record, "peak_bytes").value_or(0));
  }
  const bool is_large = largest >= 4 * 1024 * kMiB;
  return {"-memory",
          "peak memory",
          is_large ? "GiB" : "MiB",
          "peak_bytes",
          1 / (is_large ? 1024 * kMiB : kMiB),
          false};
}

void add_group(Figure& figure, const ViewSection& section, const ViewGroup& group, Pass pass,
               const Quantity& quantity) {
  const std::string title = group.title();
  FigurePanel& panel = find_or_add(
      figure.panels,
      [&](const FigurePanel& known) {
        return known.title == title && known.setting == section.setting;
      },
      FigurePanel{.title = title, .note = "", .setting = section.setting, .mask = group.mask});
  for (const ViewRow& row : group.rows) {
    const Record* record = row.pass(pass);
    if (record == nullptr || !quantity.tells_of(record->status.code)) continue;
    FigurePoint point{panel.x_of(format_tokens(group.tokens)), std::nullopt, record};
    const auto value = metric_of(record, quantity.metric);
    if (value && (record->status.ok() || !quantity.is_rate)) point.y = *value * quantity.factor;
    panel.series_named(row.kernel).points.push_back(point);
  }
}

/// Ends the scale where the series below a far larger one (`naive` keeps all scores) can be told
/// apart, and names the cells above it.
void cut_scale(Figure& figure) {
  constexpr double kFarLarger = 4;
  std::map<std::string, double> tops;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        double& top = tops[series.name];
        top = std::max(top, point.y.value_or(0));
      }
    }
  }
  std::vector<double> sorted;
  for (const auto& [name, top] : tops) {
    if (top > 0) sorted.push_back(top);
  }
  std::sort(sorted.rbegin(), sorted.rend());
  if (sorted.size() < 2 || sorted[0] <= kFarLarger * sorted[1]) return;
  figure.y_max = 1.1 * sorted[1];
  for (FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      const FigurePoint* first = nullptr;
      double top = 0;
      for (const FigurePoint& point : series.points) {
        if (point.y.value_or(0) <= *figure.y_max) continue;
        if (first == nullptr) first = &point;
        top = std::max(top, *point.y);
      }
      if (first == nullptr) continue;
      panel.note = fmt::format("above: {} from {}, up to {} {}", series.name,
                               panel.ticks[static_cast<std::size_t>(first->x)], format_figure(top),
                               figure.y_title);
    }
  }
}

Figure make_figure(const View& view, Pass pass, const Quantity& quantity) {
  Figure figure{.name = std::string(to_string(pass)) + quantity.suffix,
                .title = fmt::format("{}: {}", pass_title(pass), quantity.title),
                .x_title = "tokens",
                .y_title = quantity.unit};
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      const auto has_pass = [&](const ViewRow& row) { return row.pass(pass) != nullptr; };
      if (std::none_of(group.rows.begin(), group.rows.end(), has_pass)) continue;
      add_group(figure, section, group, pass, quantity);
    }
  }
  finish(figure);
  if (!quantity.is_rate) cut_scale(figure);
  return figure;
}

}  // namespace

std::string pass_title(Pass pass) {
  if (pass == Pass::step) return "Step";
  return pass == Pass::forward ? "Forward" : "Backward";
}

std::vector<std::string> series_by_weight(
    const View& view, const std::function<std::string(const Record&)>& name_of) {
  std::vector<std::pair<std::string, double>> weights;
  const auto weight_of = [&](const std::string& name) -> double& {
    return find_or_add(
               weights, [&](const auto& known) { return known.first == name; },
               std::pair<std::string, double>(name, 0))
        .second;
  };
  for (const Record* record : view.records()) weight_of(name_of(*record));
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      for (const RankedWork work : kWorks) {
        if (work == RankedWork::step && !view.has(Pass::step)) continue;
        const Ranking ranking = rank(group, work);
        std::map<std::string, double> of_series;
        for (const RankedRow& row : ranking.rows) {
          double& share = of_series[name_of(*row.record)];
          share = std::max(share, ranking.rows.front().time_ms / row.time_ms);
        }
        for (const auto& [name, share] : of_series) weight_of(name) += share;
      }
    }
  }
  std::stable_sort(weights.begin(), weights.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (auto& [name, weight] : weights) names.push_back(std::move(name));
  return names;
}

FigureSet make_device_figures(const View& view, const DenseComparison& comparison) {
  FigureSet set;
  SeriesColors colors;
  for (const std::string& name :
       series_by_weight(view, [](const Record& r) { return r.c.kernel; })) {
    set.series.push_back({name, colors.color_of(name), colors.on_dark(name)});
  }
  const Quantity rate{"",  "speed", std::string(view.unit.name), "tflops", view.unit.per_tflops,
                      true};
  const Quantity memory = memory_quantity(view);
  for (const Quantity& quantity : {rate, memory}) {
    for (const Pass pass : kPasses) {
      if (!view.has(pass)) continue;
      Figure figure = make_figure(view, pass, quantity);
      if (quantity.is_rate || figure.has_number()) set.figures.push_back(std::move(figure));
    }
  }
  for (Figure& figure : make_sparse_figures(comparison)) set.figures.push_back(std::move(figure));
  return set;
}

}  // namespace longca
