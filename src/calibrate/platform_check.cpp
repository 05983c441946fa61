#include "calibrate/platform_check.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace longca::calibrate {

namespace {

/// Whether both are points of one curve that moved in the same direction, or by no number.
bool move_together(const CheckedFigure& a, const CheckedFigure& b) {
  if (section_of(a.key) != section_of(b.key) || !a.is_beyond() || !b.is_beyond()) return false;
  return !((a.now < a.before && b.now > b.before) || (a.now > a.before && b.now < b.before));
}

void mark_lone_points(std::vector<CheckedFigure>& figures) {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    CheckedFigure& figure = figures[i];
    if (!is_of_curve(figure.key)) continue;
    const bool before = i > 0 && move_together(figure, figures[i - 1]);
    const bool after = i + 1 < figures.size() && move_together(figure, figures[i + 1]);
    figure.is_alone = figure.is_beyond() && !before && !after;
  }
}

}  // namespace

bool is_of_curve(std::string_view key) {
  return key.starts_with("messages.");
}

bool is_intercept(std::string_view key) {
  return key.ends_with("seconds_per_call") || key.ends_with("keys_per_row");
}

std::string section_of(std::string_view key) {
  return std::string(key.substr(0, key.rfind('.')));
}

bool CheckedFigure::is_beyond() const {
  return !(std::abs(now / before - 1) <= allowed);  // so that NaN has
}

std::vector<CheckedFigure> check_figures(const cost::Platform& page, const cost::Platform& now,
                                         double min_effect) {
  std::map<std::string, double> figures;
  for (const cost::Figure& figure : cost::figures_of(now)) figures[figure.key] = figure.value;
  std::vector<CheckedFigure> checked;
  for (const cost::Figure& figure : cost::figures_of(page)) {
    const auto before = page.spread.find(figure.key);
    const auto after = now.spread.find(figure.key);
    if (before == page.spread.end() || after == now.spread.end()) continue;
    const bool unresolved = before->second >= kUnresolved || after->second >= kUnresolved;
    if (unresolved && is_intercept(figure.key)) continue;
    checked.push_back({figure.key, figure.value, figures.at(figure.key),
                       std::max(min_effect, before->second + after->second)});
  }
  mark_lone_points(checked);
  return checked;
}

std::vector<std::string> measured_kernels(const cost::Platform& page) {
  std::vector<std::string> kernels;
  for (const auto& [kernel, rates] : page.rates) kernels.push_back(kernel);
  if (page.spread.contains("call.forward.cycles_per_second") ||
      page.spread.contains("call.backward.cycles_per_second")) {
    kernels.emplace_back("slice");
  }
  return kernels;
}

bool has_measured_links(const cost::Platform& page) {
  return page.spread.contains("links.bytes_per_second");
}

}  // namespace longca::calibrate
