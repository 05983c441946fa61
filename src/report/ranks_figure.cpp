#include "report/ranks_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "bench/suite/axes.h"
#include "report/scheme_names.h"

namespace longca {
namespace {

/// Makes the figure of one mask and pass of a section.
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
  /// The axes that all cells share and that apply to this case.
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

/// The schemes of one variant that lack the same cells.
struct Gap {
  std::string variant;
  std::string cells;  ///< "4 X, 8 X"
  std::vector<std::string> schemes;
};

std::string absent_cells(const RanksPanel& panel, const RanksSeries& series) {
  std::string text;
  for (const Record* cell : series.cells) {
    if (cell->status.ok() && metric_of(cell, "tflops")) continue;
    const std::string ranks =
        panel.ranks.size() > 1 ? fmt::format("{} ", cell->c.ranks.value_or(1)) : "";
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", ranks, status_mark(cell->status.code));
  }
  return text;
}

std::vector<Gap> find_gaps(const RanksPanel& panel) {
  std::vector<Gap> gaps;
  for (const RanksSeries& series : panel.series) {
    const std::string cells = absent_cells(panel, series);
    if (cells.empty()) continue;
    find_or_add(
        gaps,
        [&](const Gap& known) { return known.variant == series.variant && known.cells == cells; },
        Gap{series.variant, cells, {}})
        .schemes.push_back(*series.cells.front()->c.scheme);
  }
  return gaps;
}

std::string schemes_text(const RanksPanel& panel, const Gap& gap) {
  const auto of_variant =
      std::count_if(panel.series.begin(), panel.series.end(),
                    [&](const RanksSeries& series) { return series.variant == gap.variant; });
  const auto absent = std::ssize(gap.schemes);
  if (absent > 2 && absent == of_variant) return fmt::format("all {} schemes", absent);
  return fmt::format("{}", fmt::join(gap.schemes, ", "));
}

/// The first series of each name, in the order of the schemes.
std::vector<const RanksSeries*> series_with_values(
    const RanksFigure& figure, const std::function<bool(const Record&)>& has_value) {
  std::vector<const RanksSeries*> found;
  std::set<std::string> names;
  for (const RanksPanel& panel : figure.panels) {
    for (const RanksSeries& series : panel.series) {
      const bool has_values = std::any_of(series.cells.begin(), series.cells.end(),
                                          [&](const Record* cell) { return has_value(*cell); });
      if (has_values && names.insert(series.name).second) found.push_back(&series);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto* a, const auto* b) { return a->scheme < b->scheme; });
  return found;
}

}  // namespace

double RanksPanel::x_of(const Record& record) const {
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

std::string absent_text(const RanksPanel& panel) {
  std::string text;
  for (const Gap& gap : find_gaps(panel)) {
    const std::string schemes = schemes_text(panel, gap);
    text += text.empty() ? "no number: " : "; ";
    text += gap.variant.empty() ? fmt::format("{} {}", schemes, gap.cells)
                                : fmt::format("{} {} ({})", gap.variant, gap.cells, schemes);
  }
  return text;
}

RanksLegend::RanksLegend(const RanksFigure& figure,
                         const std::function<bool(const Record&)>& has_value) {
  const auto series = series_with_values(figure, has_value);
  std::set<std::size_t> schemes;
  std::vector<std::string> variants;
  for (const RanksSeries* one : series) {
    schemes.insert(one->scheme);
    if (std::find(variants.begin(), variants.end(), one->variant) == variants.end()) {
      variants.push_back(one->variant);
    }
  }
  if (schemes.size() + variants.size() < series.size()) {
    list_separately(series, variants);
  } else {
    list_one_by_one(series);
  }
}

void RanksLegend::list_one_by_one(const std::vector<const RanksSeries*>& series) {
  std::map<std::size_t, std::size_t> seen;  // by scheme
  for (const RanksSeries* one : series) {
    const std::size_t look = seen[one->scheme]++;
    looks_[one->name] = look;
    entries_.push_back({one->name, one->scheme, look});
  }
}

void RanksLegend::list_separately(const std::vector<const RanksSeries*>& series,
                                  const std::vector<std::string>& variants) {
  std::set<std::size_t> seen;
  for (const RanksSeries* one : series) {
    if (seen.insert(one->scheme).second) {
      entries_.push_back({*one->cells.front()->c.scheme, one->scheme, std::nullopt});
    }
    const auto variant = std::find(variants.begin(), variants.end(), one->variant);
    looks_[one->name] = static_cast<std::size_t>(variant - variants.begin());
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const std::string& variant = variants[i];
    entries_.push_back({variant.empty() ? "others" : variant, std::nullopt, i});
  }
}

}  // namespace longca
