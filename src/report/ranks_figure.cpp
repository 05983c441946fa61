#include "report/ranks_figure.h"

#include <algorithm>
#include <map>
#include <set>

#include "bench/axes.h"
#include "report/scheme_names.h"

namespace longca {
namespace {

class FigureMaker {
 public:
  FigureMaker(const View& view, const SplitRecords& records)
      : view_(view), names_(records.over_ranks), scalings_(make_scalings(records.over_ranks)) {}

  RanksFigure make(const ViewSection& section, const std::string& mask, Pass pass) const {
    RanksFigure figure{mask, pass, section.setting, {}, view_.unit};
    for (const Scaling& scaling : scalings_) {
      RanksPanel panel{scaling.label()};
      for (const ViewGroup& group : section.groups) {
        if (group.mask == mask) add_group(panel, group, pass, scaling);
      }
      if (panel.series.empty()) continue;
      number_variants(panel);
      figure.panels.push_back(std::move(panel));
    }
    if (!figure.panels.empty()) {
      figure.setting = setting_of(section, figure.panels.front().series.front().cells.front()->c);
    }
    return figure;
  }

 private:
  /// The axes that all cells share, without those that the mask does not depend on.
  AxisTexts setting_of(const ViewSection& section, const Case& c) const {
    AxisTexts setting;
    if (view_.kernels.size() == 1) setting.emplace_back("kernel", view_.kernels.front());
    for (const AxisTexts* axes : {&section.setting, &view_.common}) {
      for (const auto& [name, value] : *axes) {
        if (find_axis(name).text(c)) setting.emplace_back(name, value);
      }
    }
    return setting;
  }

  void add_group(RanksPanel& panel, const ViewGroup& group, Pass pass,
                 const Scaling& scaling) const {
    for (const ViewRow& row : group.rows) {
      const Record* record = row.pass(pass);
      if (record == nullptr || !scaling.contains(record->c)) continue;
      if (panel.ranks.empty() || panel.ranks.back() != group.ranks) {
        panel.ranks.push_back(group.ranks);
      }
      series_of(panel, *record).cells.push_back(record);
    }
  }

  RanksSeries& series_of(RanksPanel& panel, const Record& record) const {
    std::string name = *record.c.scheme;
    const std::string variant = names_.variant(record.c);
    if (!variant.empty()) name += ' ' + variant;
    if (view_.kernels.size() > 1) name += " · " + record.c.kernel;
    const auto found = std::find_if(panel.series.begin(), panel.series.end(),
                                    [&](const RanksSeries& known) { return known.name == name; });
    if (found != panel.series.end()) return *found;
    const auto scheme = std::find(view_.schemes.begin(), view_.schemes.end(), *record.c.scheme);
    panel.series.push_back(
        {std::move(name), static_cast<std::size_t>(scheme - view_.schemes.begin())});
    return panel.series.back();
  }

  /// In the order of the schemes, numbered within each.
  static void number_variants(RanksPanel& panel) {
    std::sort(panel.ranks.begin(), panel.ranks.end());
    panel.ranks.erase(std::unique(panel.ranks.begin(), panel.ranks.end()), panel.ranks.end());
    std::stable_sort(panel.series.begin(), panel.series.end(),
                     [](const auto& a, const auto& b) { return a.scheme < b.scheme; });
    std::map<std::size_t, std::size_t> seen;
    for (RanksSeries& series : panel.series) {
      series.variant = seen[series.scheme]++;
      std::stable_sort(series.cells.begin(), series.cells.end(),
                       [](const Record* a, const Record* b) { return a->c.ranks < b->c.ranks; });
    }
  }

  const View& view_;
  SchemeNames names_;
  std::vector<Scaling> scalings_;
};

}  // namespace

double RanksPanel::place_of(const Record& record) const {
  const auto found = std::find(ranks.begin(), ranks.end(), record.c.ranks.value_or(1));
  return static_cast<double>(found - ranks.begin());
}

std::vector<RanksFigure> make_ranks_figures(const View& view, const SplitRecords& records) {
  const FigureMaker maker(view, records);
  std::vector<RanksFigure> figures;
  for (const ViewSection& section : view.sections) {
    std::set<std::string> done;
    for (const ViewGroup& group : section.groups) {
      if (!done.insert(group.mask).second) continue;
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        RanksFigure figure = maker.make(section, group.mask, pass);
        if (!figure.panels.empty()) figures.push_back(std::move(figure));
      }
    }
  }
  return figures;
}

}  // namespace longca
