#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "report/comparison_text.h"
#include "report/format.h"
#include "report/html_text.h"

namespace longca {
namespace {

constexpr double kWidth = 1200;
constexpr double kHeight = 320;
constexpr double kLeft = 60;
constexpr double kMargin = 16;
constexpr double kMaxShownRatio = 4;  ///< beyond it an arrow stands at the edge
constexpr double kArrow = 8;

/// The plot's ratios, logarithmic, symmetric about 1 so that twice as slow is as far as twice as
/// fast.
class RatioScale {
 public:
  explicit RatioScale(const Comparison& comparison) : reach_(std::log1p(comparison.min_effect)) {
    reach_ = std::max(2 * reach_, std::log(1.02));
    for (const CellComparison& cell : comparison.cells) {
      if (cell.time) reach_ = std::max(reach_, 1.1 * std::abs(std::log(cell.time->ratio)));
    }
    reach_ = std::min(reach_, std::log(kMaxShownRatio));
  }

  double y(double ratio) const {
    const double share = std::clamp(std::log(ratio) / reach_, -1.0, 1.0);
    return kHeight / 2 - share * (kHeight / 2 - kMargin);
  }
  double largest() const { return std::exp(reach_); }
  bool holds(double ratio) const { return std::abs(std::log(ratio)) <= 1.0001 * reach_; }

 private:
  double reach_;
};

const char* color_of(CellVerdict verdict) {
  switch (verdict) {
    case CellVerdict::broken:
    case CellVerdict::slower:
      return "var(--bad)";
    case CellVerdict::fixed:
    case CellVerdict::faster:
      return "var(--good)";
    case CellVerdict::unclear:
      return "var(--warn)";
    default:
      return "var(--soft)";
  }
}

std::string grid_line(const RatioScale& scale, double ratio) {
  return fmt::format(
      R"svg(<line x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}" stroke="var(--line)"/>)svg"
      R"svg(<text x="{3}" y="{4:.1f}" text-anchor="end" fill="var(--soft)" font-size="12">{5:.3g}</text>)svg"
      "\n",
      kLeft, kWidth, scale.y(ratio), kLeft - 6, scale.y(ratio) + 4, ratio);
}

std::string point(const CellComparison& cell, double x, const RatioScale& scale,
                  const std::string& name) {
  const TimeRatio& time = *cell.time;
  std::string text = fmt::format(R"svg(<g stroke="{0}" fill="{0}"><title>{1}: {2}, {3}</title>)svg",
                                 color_of(cell.verdict), html_escaped(name),
                                 to_string(cell.verdict), format_change(time.ratio));
  if (time.low) {
    text += fmt::format(R"svg(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>)svg", x,
                        scale.y(*time.low), scale.y(*time.high));
  }
  const double y = scale.y(time.ratio);
  if (scale.holds(time.ratio)) {
    text += fmt::format(R"svg(<circle cx="{:.1f}" cy="{:.1f}" r="2"/>)svg", x, y);
  } else {  // an arrow to where it is
    const double tip = time.ratio > 1 ? -kArrow : kArrow;
    text += fmt::format(R"svg(<path d="M{:.1f} {:.1f}h{}l{} {}z"/>)svg", x - kArrow / 2, y, kArrow,
                        -kArrow / 2, tip);
  }
  return text + "</g>\n";
}

std::string plot(const Comparison& comparison, const CellNames& names) {
  std::vector<const CellComparison*> cells;
  for (const CellComparison& cell : comparison.cells) {
    if (cell.time) cells.push_back(&cell);
  }
  if (cells.empty()) return "<p>No cell has times in both.</p>";
  std::ranges::stable_sort(cells, {}, [](const CellComparison* cell) { return cell->time->ratio; });
  const RatioScale scale(comparison);
  std::string svg = fmt::format(
      R"svg(<div class="scroll"><svg class="ratios" viewBox="0 0 {} {}" role="img" aria-label="Ratios of time, NEW to BASE">)svg"
      "\n",
      kWidth, kHeight);
  const double least = 1 + comparison.min_effect;
  svg += fmt::format(
      R"svg(<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}" fill="var(--accent-soft)"/>)svg"
      "\n",
      kLeft, scale.y(least), kWidth - kLeft, scale.y(1 / least) - scale.y(least));
  std::vector<double> ticks = {scale.largest(), 1, 1 / scale.largest()};
  if (scale.largest() > 2.5) ticks.insert(ticks.end(), {2, 0.5});
  for (const double ratio : ticks) svg += grid_line(scale, ratio);
  const double step = (kWidth - kLeft) / static_cast<double>(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double x = kLeft + step * (static_cast<double>(i) + 0.5);
    svg += point(*cells[i], x, scale, names.name(cells[i]->c));
  }
  return svg + "</svg></div>";
}

std::string tiles(const Comparison& comparison) {
  std::string html;
  for (const CellVerdict verdict : kShownVerdicts) {
    const std::size_t n = comparison.counts.at(verdict);
    if (n > 0) html += fmt::format("<li><b>{}</b>{}</li>", n, to_string(verdict));
  }
  return html;
}

std::string environment(const Comparison& comparison) {
  if (comparison.environment.empty()) return "";
  std::string html =
      "<section class=\"card\"><h2>What differs</h2><table class=\"plain environment\">\n";
  for (const auto& [name, base, next] : comparison.environment) {
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", html_escaped(name),
                        html_escaped(base), html_escaped(next));
  }
  return html + "</table></section>";
}

std::string cell_row(const CellComparison& cell, const CellNames& names) {
  const auto figure = [](const std::optional<double>& ms) { return ms ? format_figure(*ms) : ""; };
  std::string ratio;
  std::string interval;
  if (cell.time) {
    ratio = fmt::format("{:.4f}", cell.time->ratio);
    if (cell.time->low) {
      interval = fmt::format("{:.4f} to {:.4f}", *cell.time->low, *cell.time->high);
    }
  }
  return fmt::format(
      "<tr><td style=\"color:{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td class=\"interval\">{}</td><td>{}</td></tr>\n",
      color_of(cell.verdict), to_string(cell.verdict), html_escaped(names.name(cell.c)),
      figure(cell.base_ms), figure(cell.next_ms), ratio, interval,
      html_escaped(describe_changes(cell)));
}

}  // namespace

void write_comparison_html(std::ostream& out, const Comparison& comparison,
                           const ComparedNames& names) {
  const CellNames cell_names(comparison);
  std::string cells;
  for (const CellComparison* cell : cells_to_show(comparison)) cells += cell_row(*cell, cell_names);
  const std::string heading = fmt::format("{} cells compared", comparison.cells.size());
  out << fill_template(
      kComparisonHtml,
      {{"title", "longca-bench: " + heading},
       {"style", std::string(kStyleCss)},
       {"heading", heading},
       {"names", html_escaped(fmt::format("BASE {}, NEW {}", names.base, names.next))},
       {"tiles", tiles(comparison)},
       {"environment", environment(comparison)},
       {"plot", plot(comparison, cell_names)},
       {"cells", cells}});
}

}  // namespace longca
