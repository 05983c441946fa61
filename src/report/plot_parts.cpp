#include "report/plot_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "core/rounding.h"
#include "report/gnuplot.h"

namespace longca {
namespace {

// In pixels of a 96 dpi screen.
constexpr int kLineHeight = 22;
constexpr int kMargin = 20;
constexpr double kLetterWidth = 7.4;
constexpr double kSmallLetterWidth = 5.8;
constexpr double kSquare = 6;   ///< half its width
constexpr double kStroke = 11;  ///< half its width
constexpr double kItemSpace = 22;

bool has_square(const PlotHead::Item& item) {
  return !item.color.empty() && item.dash == 0;
}

/// The width of the square and stroke before an item's text.
double sign_width(const PlotHead::Item& item) {
  if (item.color.empty()) return 0;
  return (has_square(item) ? 2 * kSquare : 2 * kStroke) + 6;
}

bool begins_letter(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // UTF-8
}

std::string first_letters(std::string_view text, std::size_t letters) {
  std::size_t end = 0;
  while (end < text.size() && (letters > 0 || !begins_letter(text[end]))) {
    if (begins_letter(text[end++])) --letters;
  }
  return std::string(text.substr(0, end));
}

std::vector<std::string> with_ellipsis(std::vector<std::string> lines) {
  lines.back() += "…";
  return lines;
}

}  // namespace

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

std::vector<std::string> wrapped_text(std::string_view text, std::size_t max_letters,
                                      std::size_t max_lines) {
  std::vector<std::string> wrapped(1);
  std::size_t length = 0;  // of the last line
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto letters = static_cast<std::size_t>(columns_of(word));
    const std::size_t wanted = letters + (length > 0 ? 1 : 0);
    if (length > 0 && length + wanted > max_letters) {
      if (wrapped.size() == max_lines) return with_ellipsis(std::move(wrapped));
      wrapped.emplace_back();
      length = 0;
    }
    if (length == 0 && wanted > max_letters) {
      wrapped.back() = first_letters(word, max_letters - 1);
      return with_ellipsis(std::move(wrapped));
    }
    wrapped.back().append(length > 0 ? " " : "").append(word);
    length += length > 0 ? wanted : letters;
  }
  return wrapped;
}

std::string plot_title(const std::string& title, const std::string& note, int width) {
  constexpr int kFirstTag = 998;  // of two labels that each panel replaces
  constexpr int kMaxLines = 2;
  constexpr double kNoteLetter = 5;    // pixels
  constexpr double kNoteLine = 0.055;  // of the panel's height
  constexpr double kTitleRise = 0.65;  // per line of the note, in letters
  const auto lines =
      wrapped_text(note, static_cast<std::size_t>(width / kNoteLetter) - 8, kMaxLines);
  std::string script;
  for (int i = 0; i < kMaxLines; ++i) {
    const int from_bottom = static_cast<int>(lines.size()) - 1 - i;
    const bool is_used = from_bottom >= 0;
    script += fmt::format("set label {} {} at graph 0.5,{:.3f} center font ',7' tc rgb '#606060'\n",
                          kFirstTag + i,
                          gnuplot_quoted(is_used ? lines[static_cast<std::size_t>(i)] : ""),
                          1.03 + kNoteLine * std::max(from_bottom, 0));
  }
  return script + fmt::format("set title {} offset 0,{}\n", gnuplot_quoted(title),
                              note.empty() ? 0.0 : kTitleRise * static_cast<double>(lines.size()));
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

void PlotHead::add_axes(const AxisTexts& axes) {
  std::vector<Item> items;
  for (std::string& text : axis_items(axes)) items.push_back({std::move(text)});
  add_line(items);
}

void PlotHead::add_hint(const std::string& text) {
  constexpr std::size_t kMaxLines = 3;
  if (text.empty()) return;
  const auto letters = static_cast<std::size_t>((width_ - 2 * kMargin) / kSmallLetterWidth);
  for (std::string& line : wrapped_text(text, letters, kMaxLines)) {
    add_line({{.text = std::move(line), .is_small = true}});
  }
}

int PlotHead::height() const {
  return line_ * kLineHeight + kMargin;
}

std::string PlotHead::script(int height) const {
  std::string script;
  for (const Placed& placed : placed_) {
    const double y = 1 - (placed.line + 0.9) * kLineHeight / height;
    const double x = placed.x;
    if (has_square(placed.item)) {
      script += fmt::format(
          "set object rectangle center screen {:.4f},{:.4f} size screen {:.4f},{:.4f} "
          "fc rgb '{}' fs solid noborder\n",
          (x + kSquare) / width_, y, 2 * kSquare / width_, 2 * kSquare / height, placed.item.color);
    } else if (!placed.item.color.empty()) {
      script += fmt::format(
          "set arrow from screen {:.4f},{:.4f} to screen {:.4f},{:.4f} nohead lw 2 lc rgb '{}' "
          "dt {}\n",
          x / width_, y, (x + 2 * kStroke) / width_, y, placed.item.color, placed.item.dash);
    }
    if (placed.item.point > 0) {
      script += fmt::format("set label '' at screen {:.4f},{:.4f} point pt {} ps 0.9 lc rgb '{}'\n",
                            (x + kStroke) / width_, y, placed.item.point, placed.item.color);
    }
    script += fmt::format("set label {} at screen {:.4f},{:.4f} left front{}\n",
                          gnuplot_quoted(placed.item.text),
                          (placed.x + sign_width(placed.item)) / width_, y,
                          placed.line == 0       ? " font ',12'"
                          : placed.item.is_small ? " font ',8' tc rgb '#606060'"
                                                 : "");
  }
  return script;
}

std::vector<PlotHead::Item> mark_items(const std::function<bool(StatusCode)>& shows) {
  std::vector<PlotHead::Item> items;
  for (const StatusCode code : marked_statuses()) {
    if (shows(code)) items.push_back({fmt::format("{} {}", status_mark(code), status_text(code))});
  }
  return items;
}

PlotScript panels_script(const PanelGrid& grid, const PlotHead& head, const std::string& settings,
                         const std::function<std::string(int panel)>& panel_script) {
  const int rows = ceil_div(grid.panels, grid.columns);
  const int height = rows * grid.panel_height + head.height();
  std::string script =
      "set multiplot\nset border 3 lc rgb '#808080'\nset tics nomirror scale 0.4\n"
      "set grid ytics lc rgb '#e0e0e0' lt 1 lw 0.6\nunset key\n" +
      settings;
  for (int i = 0; i < grid.panels; ++i) {
    // The head's objects are drawn with the first panel only.
    if (i == 0) script += head.script(height);
    if (i == 1) script += "unset label\nunset object\nunset arrow\n";
    const int bottom = (rows - 1 - i / grid.columns) * grid.panel_height;
    script += fmt::format("set origin {:.4f},{:.4f}\nset size {:.4f},{:.4f}\n",
                          static_cast<double>(i % grid.columns) / grid.columns,
                          static_cast<double>(bottom) / height, 1.0 / grid.columns,
                          static_cast<double>(grid.panel_height) / height);
    script += panel_script(i);
  }
  return {script + "unset multiplot\n", grid.width, height};
}

}  // namespace longca
