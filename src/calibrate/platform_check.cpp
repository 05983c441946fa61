#include "calibrate/platform_check.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace longca::calibrate {

bool CheckedFigure::has_moved() const {
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
    checked.push_back({figure.key, figure.value, figures.at(figure.key),
                       std::max(min_effect, before->second + after->second)});
  }
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
