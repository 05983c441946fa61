#include "report/ranks_figure.h"

#include <algorithm>
#include <optional>
#include <set>

#include "bench/suite/axes.h"
#include "report/scheme_names.h"

namespace longca {
namespace {

/// Makes the figure of a section's mask and pass.
class FigureMaker {
 public:
  FigureMaker(const View& view, const std::vector<Scaling>& scalings, const ViewSection& section,
              const std::string& mask, Pass pass)
      : view_(view), scalings_(scalings), section_(section), mask_(mask), pass_(pass) {
    for (const ViewGroup& group : section.groups) {
      if (group.mask != mask) continue;
      for (const ViewRow& row : group.rows) {
        if (const Record* record = row.pass(pass)) records_.push_back(*record);
      }
    }
    names_.emplace(records_);
    for (const Record& record : records_) kernels_.insert(record.c.kernel);
  }

  RanksFigure make() const {
    RanksFigure figure{mask_, pass_, section_.setting, {}, view_.unit};
    for (const Scaling& scaling : scalings_) {
      RanksPanel panel{scaling.label()};
      for (const ViewGroup& group : section_.groups) {
        if (group.mask == mask_) add_group(panel, group, scaling);
      }
      if (panel.series.empty()) continue;
      put_in_order(panel);
      figure.panels.push_back(std::move(panel));
    }
    if (!figure.panels.empty()) {
      figure.setting = setting_of(figure.panels.front().series.front().cells.front()->c);
    }
    return figure;
  }

 private:
  /// The axes that all cells share, without those that the mask does not depend on.
  AxisTexts setting_of(const Case& c) const {
    AxisTexts setting;
    if (kernels_.size() == 1) setting.emplace_back("kernel", *kernels_.begin());
    for (const AxisTexts* axes : {&section_.setting, &view_.common}) {
      for (const auto& [name, value] : *axes) {
        if (find_axis(name).text(c)) setting.emplace_back(name, value);
      }
    }
    return setting;
  }

  void add_group(RanksPanel& panel, const ViewGroup& group, const Scaling& scaling) const {
    for (const ViewRow& row : group.rows) {
      const Record* record = row.pass(pass_);
      if (record == nullptr || !scaling.contains(record->c)) continue;
      if (panel.ranks.empty() || panel.ranks.back() != group.ranks) {
        panel.ranks.push_back(group.ranks);
      }
      series_of(panel, *record).cells.push_back(record);
    }
  }

  RanksSeries& series_of(RanksPanel& panel, const Record& record) const {
    std::string variant = kernels_.size() > 1 ? record.c.kernel : "";
    const std::string of_scheme = names_->variant(record.c);
    if (!of_scheme.empty()) variant += (variant.empty() ? "" : " ") + of_scheme;
    std::string name = *record.c.scheme + (variant.empty() ? "" : " " + variant);
    const auto found = std::find_if(panel.series.begin(), panel.series.end(),
                                    [&](const RanksSeries& known) { return known.name == name; });
    if (found != panel.series.end()) return *found;
    const auto scheme = std::find(view_.schemes.begin(), view_.schemes.end(), *record.c.scheme);
    panel.series.push_back({std::move(name), std::move(variant),
                            static_cast<std::size_t>(scheme - view_.schemes.begin())});
    return panel.series.back();
  }

  static void put_in_order(RanksPanel& panel) {
    std::sort(panel.ranks.begin(), panel.ranks.end());
    panel.ranks.erase(std::unique(panel.ranks.begin(), panel.ranks.end()), panel.ranks.end());
    std::stable_sort(panel.series.begin(), panel.series.end(),
                     [](const auto& a, const auto& b) { return a.scheme < b.scheme; });
    for (RanksSeries& series : panel.series) {
      std::stable_sort(series.cells.begin(), series.cells.end(),
                       [](const Record* a, const Record* b) { return a->c.ranks < b->c.ranks; });
    }
  }

  const View& view_;
  const std::vector<Scaling>& scalings_;
  const ViewSection& section_;
  const std::string& mask_;
  Pass pass_;
  std::vector<Record> records_;  // of the figure
  std::optional<SchemeNames> names_;
  std::set<std::string> kernels_;
};

}  // namespace

double RanksPanel::place_of(const Record& record) const {
  const auto found = std::find(ranks.begin(), ranks.end(), record.c.ranks.value_or(1));
  return static_cast<double>(found - ranks.begin());
}

std::vector<RanksFigure> make_ranks_figures(const View& view, const SplitRecords& records) {
  const std::vector<Scaling> scalings = make_scalings(records.over_ranks);
  std::vector<RanksFigure> figures;
  for (const ViewSection& section : view.sections) {
    std::set<std::string> done;
    for (const ViewGroup& group : section.groups) {
      if (!done.insert(group.mask).second) continue;
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        RanksFigure figure = FigureMaker(view, scalings, section, group.mask, pass).make();
        if (!figure.panels.empty()) figures.push_back(std::move(figure));
      }
    }
  }
  return figures;
}

}  // namespace longca
