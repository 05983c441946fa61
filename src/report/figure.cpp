#include "report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace longca {
namespace {

constexpr double kGroupWidth = 0.8;         ///< of the distance between two lengths
constexpr std::size_t kMaxMarkedBars = 24;  ///< of a panel that has marks between its bars

template <typename Matches>
bool any_bar(const Figure& figure, Matches matches) {
  return std::any_of(figure.panels.begin(), figure.panels.end(), [&](const FigurePanel& panel) {
    return std::any_of(panel.bars.begin(), panel.bars.end(), matches);
  });
}

std::string panel_title(const ViewGroup& group) {
  if (group.setting.empty()) return group.mask;
  return fmt::format("{} ({})", group.mask, join_axes(group.setting, ", "));
}

void add_group(Figure& figure, FigurePanel& panel, const ViewGroup& group) {
  const auto place = static_cast<double>(panel.tokens.size());
  for (const ViewRow& row : group.rows) {
    const Record* record = row.pass(figure.pass);
    if (record == nullptr) continue;
    const auto kernel = std::find(figure.kernels.begin(), figure.kernels.end(), row.kernel);
    FigureBar bar{static_cast<std::size_t>(kernel - figure.kernels.begin()), place, std::nullopt,
                  record->status.code};
    const auto rate = metric_of(record, "tflops");
    if (rate && record->status.ok()) bar.rate = *rate * figure.unit.per_tflops;
    panel.bars.push_back(bar);
  }
  panel.tokens.push_back(group.tokens);
}

/// Takes out the kernels that have no number in a panel of many bars, and lists them instead.
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

/// Moves the bars of each length side by side; kernels that a panel lacks leave no gap.
void spread_bars(FigurePanel& panel) {
  std::set<std::size_t> kernels;
  for (const FigureBar& bar : panel.bars) kernels.insert(bar.kernel);
  panel.bar_width = kGroupWidth / static_cast<double>(std::max<std::size_t>(kernels.size(), 1));
  for (FigureBar& bar : panel.bars) {
    const auto slot = std::distance(kernels.begin(), kernels.find(bar.kernel));
    bar.x += (static_cast<double>(slot) + 0.5) * panel.bar_width - kGroupWidth / 2;
  }
}

Figure make_figure(const View& view, const ViewSection& section, Pass pass) {
  Figure figure{pass, section.setting, section.setting, view.unit, view.kernels, {}};
  figure.setting.insert(figure.setting.end(), view.common.begin(), view.common.end());
  for (const ViewGroup& group : section.groups) {
    const auto has_pass = [&](const ViewRow& row) { return row.pass(pass) != nullptr; };
    if (std::none_of(group.rows.begin(), group.rows.end(), has_pass)) continue;
    const std::string title = panel_title(group);
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

}  // namespace longca
