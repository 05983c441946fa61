#include "report/plot_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "report/gnuplot.h"

namespace longca {
namespace {

constexpr std::array<const char*, 10> kColors = {"#2f6fbb", "#e08a3c", "#3c9d6b", "#b8527f",
                                                 "#8468b8", "#c2a02e", "#45a3b5", "#c4534a",
                                                 "#7a8290", "#6f7f35"};
// In pixels of a 96 dpi screen.
constexpr int kLineHeight = 22;
constexpr int kMargin = 20;
constexpr double kLetterWidth = 7.4;
constexpr double kSquare = 6;   ///< half of it
constexpr double kStroke = 11;  ///< half of it
constexpr double kItemSpace = 22;

/// What stands before an item's text.
double sign_width(const PlotHead::Item& item) {
  if (item.color == nullptr) return 0;
  return item.dash > 0 ? 2 * kStroke + 6 : 2 * kSquare + 6;
}

}  // namespace

const char* plot_color(std::size_t n) {
  return kColors[n % kColors.size()];
}

double plot_tic_step(double largest) {
  if (largest <= 0) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(largest)));
  for (const double step : {0.2, 0.5, 1.0}) {
    if (largest / (step * power) <= 6) return step * power;
  }
  return 2 * power;
}

std::string plot_stem(std::string name, const AxisTexts& setting) {
  for (const auto& [axis, value] : setting) name += fmt::format("-{}-{}", axis, value);
  const auto is_unfit = [](unsigned char c) {
    return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-';
  };
  std::replace_if(name.begin(), name.end(), is_unfit, '-');
  return name;
}

void PlotHead::add_line(const std::vector<Item>& items) {
  double x = kMargin;
  for (const Item& item : items) {
    const double wanted = static_cast<double>(item.text.size()) * kLetterWidth + sign_width(item);
    if (x > kMargin && x + wanted > width_ - kMargin) {
      x = kMargin;
      ++line_;
    }
    placed_.push_back({item, x, line_});
    x += wanted + kItemSpace;
  }
  ++line_;
}

int PlotHead::height() const {
  return line_ * kLineHeight + kMargin;
}

std::string PlotHead::script(int height) const {
  std::string script;
  for (const Placed& placed : placed_) {
    const double y = 1 - (placed.line + 0.9) * kLineHeight / height;
    const double x = placed.x;
    if (placed.item.color != nullptr && placed.item.dash > 0) {
      script += fmt::format(
          "set arrow from screen {:.4f},{:.4f} to screen {:.4f},{:.4f} nohead lw 2 lc rgb '{}' "
          "dt {}\n",
          x / width_, y, (x + 2 * kStroke) / width_, y, placed.item.color, placed.item.dash);
    } else if (placed.item.color != nullptr) {
      script += fmt::format(
          "set object rectangle center screen {:.4f},{:.4f} size screen {:.4f},{:.4f} "
          "fc rgb '{}' fs solid noborder\n",
          (x + kSquare) / width_, y, 2 * kSquare / width_, 2 * kSquare / height, placed.item.color);
    }
    script += fmt::format("set label {} at screen {:.4f},{:.4f} left front{}\n",
                          gnuplot_quoted(placed.item.text), (x + sign_width(placed.item)) / width_,
                          y, placed.line == 0 ? " font ',12'" : "");
  }
  return script;
}

}  // namespace longca
