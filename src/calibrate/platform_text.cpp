#include "calibrate/platform_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/printable.h"

namespace longca::calibrate {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

/// In the largest of the units that leaves a number of at least 1, else in the last.
std::string in_units(double value, std::initializer_list<Unit> units) {
  for (const Unit& unit : units) {
    if (value >= unit.size) return fmt::format("{:.4g} {}", value / unit.size, unit.name);
  }
  const Unit& smallest = *std::prev(units.end());
  return fmt::format("{:.4g} {}", value / smallest.size, smallest.name);
}

/// With the unit that the key's name says.
std::string value_text(const std::string& key, double value) {
  if (key.ends_with("bytes_per_second")) return in_units(value, {{"TB/s", 1e12}, {"GB/s", 1e9}});
  if (key.ends_with("flops_per_second")) {
    return in_units(value, {{"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}});
  }
  if (key.ends_with("cycles_per_second")) return in_units(value, {{"GHz", 1e9}});
  if (is_of_curve(key) || key.find(".seconds_") != std::string::npos) {
    return in_units(value, {{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}});
  }
  return fmt::format("{:.4g}", value);
}

std::string percent_text(double part) {
  return fmt::format("±{:.1f} %", part * 100);
}

std::string spread_text(double part) {
  return part >= kUnresolved ? "unresolved" : percent_text(part);
}

std::string curve_key(const std::string& pattern, std::int64_t bytes) {
  return fmt::format("messages.{}.{}", pattern, bytes);
}

/// "64K", as axes take it.
std::string size_text(std::int64_t bytes) {
  for (const auto& [unit, shift] : {std::pair{'G', 30}, {'M', 20}, {'K', 10}}) {
    if (bytes % (std::int64_t{1} << shift) == 0) return fmt::format("{}{}", bytes >> shift, unit);
  }
  return std::to_string(bytes);
}

/// The curves that were measured, side by side: a line for each size.
std::string describe_curves(const cost::Platform& platform) {
  std::vector<std::string> patterns;
  std::set<std::int64_t> sizes;
  for (const auto& [pattern, times] : platform.messages) {
    for (const auto& [bytes, seconds] : times.seconds) {
      if (!platform.spread.contains(curve_key(pattern, bytes))) continue;
      if (patterns.empty() || patterns.back() != pattern) patterns.push_back(pattern);
      sizes.insert(bytes);
    }
  }
  if (patterns.empty()) return "";
  std::string text = fmt::format("{:<8}", "bytes");
  for (const std::string& pattern : patterns) text += fmt::format(" {:>21}", pattern);
  for (const std::int64_t bytes : sizes) {
    text += fmt::format("\n{:<8}", size_text(bytes));
    for (const std::string& pattern : patterns) {
      const std::string key = curve_key(pattern, bytes);
      const auto& seconds = platform.messages.at(pattern).seconds;
      const auto point = seconds.find(bytes);
      const auto spread = platform.spread.find(key);
      const bool has = point != seconds.end() && spread != platform.spread.end();
      text += fmt::format(" {:>10} {:>10}", has ? value_text(key, point->second) : "",
                          has ? spread_text(spread->second) : "");
    }
  }
  return text + "\n";
}

}  // namespace

std::string describe_platform(const cost::Platform& platform) {
  std::string text = fmt::format("{}: {}\n", platform.name, platform.description);
  text += fmt::format("{:<46} {:>18} {:>10}\n", "measured", "", "spread");
  std::set<std::string> measured;
  std::vector<std::string> others;
  for (const cost::Figure& figure : cost::figures_of(platform)) {
    if (const auto spread = platform.spread.find(figure.key); spread != platform.spread.end()) {
      measured.insert(section_of(figure.key));
      if (is_of_curve(figure.key)) continue;
      text += fmt::format("{:<46} {:>18} {:>10}\n", figure.key,
                          value_text(figure.key, figure.value), spread_text(spread->second));
    }
  }
  for (const cost::Figure& figure : cost::figures_of(platform)) {
    const std::string section = section_of(figure.key);
    const bool known = std::ranges::find(others, section) != others.end();
    if (section != "device" && !known && !measured.contains(section)) others.push_back(section);
  }
  return text + describe_curves(platform) +
         fmt::format("not measured: {}\n", fmt::join(others, ", "));
}

std::string describe_check(const std::string& page, std::span<const CheckedFigure> figures) {
  std::vector<const CheckedFigure*> order;
  for (const CheckedFigure& figure : figures) order.push_back(&figure);
  std::stable_partition(order.begin(), order.end(),
                        [](const CheckedFigure* figure) { return figure->has_moved(); });
  std::string text = fmt::format("{:<46} {:>18} {:>18} {:>9} {:>10}\n", "figure", printable(page),
                                 "now", "change", "allowed");
  int unmoved_points = 0;
  for (const CheckedFigure* figure : order) {
    if (is_of_curve(figure->key) && !figure->has_moved()) {
      ++unmoved_points;
      continue;
    }
    text +=
        fmt::format("{:<46} {:>18} {:>18} {:>+7.1f} % {:>10}{}\n", figure->key,
                    value_text(figure->key, figure->before), value_text(figure->key, figure->now),
                    (figure->now / figure->before - 1) * 100, percent_text(figure->allowed),
                    figure->has_moved() ? "  moved" : "");
  }
  if (unmoved_points > 0) {
    text +=
        fmt::format("and {} points of curves over messages that have not moved\n", unmoved_points);
  }
  const auto moved = std::ranges::count_if(figures, &CheckedFigure::has_moved);
  return text + fmt::format("{} of {} figures moved\n", moved, figures.size());
}

}  // namespace longca::calibrate
