#include "report/ranks_legend.h"

#include <algorithm>
#include <set>

namespace longca {
namespace {

/// The first of each name, in the order of the schemes.
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
    list_apart(series, variants);
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

void RanksLegend::list_apart(const std::vector<const RanksSeries*>& series,
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
