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

bool has_square(const PlotHead::Item& item) {
  return item.color != nullptr && (item.dash == 0 || item.has_square);
}

/// What stands before an item's text.
double sign_width(const PlotHead::Item& item) {
  if (item.color == nullptr) return 0;
  return (has_square(item) ? 2 * kSquare + 6 : 0) + (item.dash > 0 ? 2 * kStroke + 6 : 0);
}

bool begins_letter(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // UTF-8
}

std::size_t letters_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_letter));
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

std::vector<std::string> wrapped_text(std::string_view text, std::size_t letters,
                                      std::size_t lines) {
  std::vector<std::string> wrapped(1);
  std::size_t length = 0;  // of the last line
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t wanted = letters_of(word) + (length > 0 ? 1 : 0);
    if (length > 0 && length + wanted > letters) {
      if (wrapped.size() == lines) return with_ellipsis(std::move(wrapped));
      wrapped.emplace_back();
      length = 0;
    }
    if (length == 0 && wanted > letters) {
      wrapped.back() = first_letters(word, letters - 1);
      return with_ellipsis(std::move(wrapped));
    }
    wrapped.back().append(length > 0 ? " " : "").append(word);
    length += length > 0 ? wanted : letters_of(word);
  }
  return wrapped;
}

std::string plot_title(const std::string& title, const std::string& note, int width) {
  constexpr int kFirstTag = 998;  // two labels, replaced from panel to panel
  constexpr int kMaxLines = 2;
  constexpr double kNoteLetter = 5;     // pixels
  constexpr double kNoteLine = 0.055;   // of the panel's height
  constexpr double kTitleRises = 0.65;  // by a line, in letters
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
                              note.empty() ? 0.0 : kTitleRises * static_cast<double>(lines.size()));
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
    double x = placed.x;
    if (has_square(placed.item)) {
      script += fmt::format(
          "set object rectangle center screen {:.4f},{:.4f} size screen {:.4f},{:.4f} "
          "fc rgb '{}' fs {}\n",
          (x + kSquare) / width_, y, 2 * kSquare / width_, 2 * kSquare / height, placed.item.color,
          placed.item.pattern > 0
              ? fmt::format("pattern {} border rgb '{}'", placed.item.pattern, placed.item.color)
              : "solid noborder");
      x += 2 * kSquare + 6;
    }
    if (placed.item.color != nullptr && placed.item.dash > 0) {
      script += fmt::format(
          "set arrow from screen {:.4f},{:.4f} to screen {:.4f},{:.4f} nohead lw 2 lc rgb '{}' "
          "dt {}\n",
          x / width_, y, (x + 2 * kStroke) / width_, y, placed.item.color, placed.item.dash);
    }
    script += fmt::format(
        "set label {} at screen {:.4f},{:.4f} left front{}\n", gnuplot_quoted(placed.item.text),
        (placed.x + sign_width(placed.item)) / width_, y, placed.line == 0 ? " font ',12'" : "");
  }
  return script;
}

}  // namespace longca
