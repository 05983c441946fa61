#include "report/data/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "report/view.h"

namespace longca {
namespace {

constexpr std::size_t kMaxTicksOfBars = 3;

/// Cells side by side that lack a number for the same reason.
struct AbsentRun {
  std::size_t first, last;  // ticks
  StatusCode status;
};

std::vector<AbsentRun> absent_runs(const FigureSeries& series) {
  std::vector<AbsentRun> runs;
  for (const FigurePoint& point : series.points) {
    if (point.y) continue;
    const auto tick = static_cast<std::size_t>(point.x);
    const StatusCode status = point.record->status.code;
    const bool goes_on =
        !runs.empty() && runs.back().status == status && runs.back().last + 1 == tick;
    if (goes_on) {
      runs.back().last = tick;
    } else {
      runs.push_back({tick, tick, status});
    }
  }
  return runs;
}

/// "64K–128K E, 256K X", or only the mark if all are alike.
std::string absent_cells(const FigurePanel& panel, const FigureSeries& series) {
  const std::vector<AbsentRun> runs = absent_runs(series);
  if (!series.has_number() && runs.size() == 1) return std::string(status_mark(runs[0].status));
  std::string text;
  for (const auto& [first, last, status] : runs) {
    text += fmt::format("{}{}{} {}", text.empty() ? "" : ", ", panel.ticks[first],
                        last > first ? "–" + panel.ticks[last] : "", status_mark(status));
  }
  return text;
}

}  // namespace

bool FigureSeries::has_number() const {
  return std::any_of(points.begin(), points.end(), [](const auto& point) { return point.y; });
}

FigureSeries& FigurePanel::series_named(const std::string& name, bool is_dashed) {
  return find_or_add(
      series,
      [&](const FigureSeries& known) { return known.name == name && known.is_dashed == is_dashed; },
      FigureSeries{.name = name, .is_dashed = is_dashed});
}

double FigurePanel::x_of(const std::string& tick) {
  const auto found = std::find(ticks.begin(), ticks.end(), tick);
  const auto x = found - ticks.begin();
  if (found == ticks.end()) ticks.push_back(tick);
  return static_cast<double>(x);
}

std::string_view to_string(FigureMark mark) {
  switch (mark) {
    case FigureMark::bars:
      return "bars";
    case FigureMark::stacks:
      return "stacks";
    case FigureMark::lines:
      return "lines";
  }
  return "";
}

bool Figure::has_number() const {
  return std::any_of(panels.begin(), panels.end(), [](const FigurePanel& panel) {
    return std::any_of(panel.series.begin(), panel.series.end(),
                       [](const FigureSeries& series) { return series.has_number(); });
  });
}

bool Figure::has_dashes() const {
  return std::any_of(panels.begin(), panels.end(), [](const FigurePanel& panel) {
    return std::any_of(panel.series.begin(), panel.series.end(),
                       [](const FigureSeries& series) { return series.is_dashed; });
  });
}

bool Figure::shows(StatusCode status) const {
  for (const FigurePanel& panel : panels) {
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        if (!point.y && point.record->status.code == status) return true;
      }
    }
  }
  return false;
}

std::vector<SeriesStyle> FigureSet::drawn_series(const Figure& figure) const {
  std::set<std::string> with_number;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& one : panel.series) {
      if (one.has_number()) with_number.insert(one.name);
    }
  }
  std::vector<SeriesStyle> drawn;
  for (const SeriesStyle& style : series) {
    if (drawn.size() < kMaxSeries && with_number.contains(style.name)) drawn.push_back(style);
  }
  return drawn;
}

Figure narrowed(const Figure& figure, const AxisTexts& choice) {
  Figure narrow = figure;
  std::erase_if(narrow.panels,
                [&](const FigurePanel& panel) { return !agrees(panel.setting, choice); });
  if (!narrow.has_dashes()) narrow.dashed_means.clear();
  return narrow;
}

std::vector<AxisTexts> settings_to_draw(const Figure& figure) {
  std::vector<AxisTexts> settings;
  for (const FigurePanel& panel : figure.panels) {
    if (std::find(settings.begin(), settings.end(), panel.setting) == settings.end()) {
      settings.push_back(panel.setting);
    }
  }
  return widest_settings(std::move(settings));
}

void finish(Figure& figure) {
  std::stable_sort(figure.panels.begin(), figure.panels.end(), [](const auto& a, const auto& b) {
    return mask_index(a.mask) < mask_index(b.mask);
  });
  for (const FigurePanel& panel : figure.panels) {
    if (figure.mark == FigureMark::bars && panel.ticks.size() > kMaxTicksOfBars) {
      figure.mark = FigureMark::lines;
    }
  }
  for (FigurePanel& panel : figure.panels) {
    if (panel.ticks.empty()) continue;
    for (FigureSeries& series : panel.series) {
      const bool has_marks = figure.mark == FigureMark::bars && series.has_number();
      if (!has_marks) series.absent = absent_cells(panel, series);
    }
  }
}

std::string absent_text(const FigurePanel& panel) {
  std::vector<std::pair<std::string, std::string>> names;  // by what is absent
  for (const FigureSeries& series : panel.series) {
    if (series.absent.empty()) continue;
    std::string& list = find_or_add(
                            names, [&](const auto& known) { return known.first == series.absent; },
                            std::pair<std::string, std::string>(series.absent, ""))
                            .second;
    list += (list.empty() ? "" : ", ") + series.name;
  }
  std::string text;
  for (const auto& [absent, list] : names) {
    text += fmt::format("{}{} {}", text.empty() ? "no number: " : "; ", list, absent);
  }
  return text;
}

}  // namespace longca
