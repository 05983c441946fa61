#include "report/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "core/printable.h"

namespace longca {
namespace {

constexpr std::size_t kMaxReasons = 12;

}  // namespace

void widen(int& column, std::string_view text) {
  column = std::max(column, columns_of(text));
}

Ink ink_of(StatusCode status) {
  switch (status) {
    case StatusCode::ok:
      return Ink::plain;
    case StatusCode::unsupported:
    case StatusCode::unavailable:
      return Ink::dim;
    case StatusCode::oom:
    case StatusCode::timeout:
      return Ink::yellow;
    case StatusCode::wrong:
    case StatusCode::crash:
      return Ink::red;
  }
  return Ink::plain;
}

std::string TerminalText::paint(Ink ink, const std::string& text) const {
  if (!options_.color || ink == Ink::plain) return text;
  constexpr std::array<int, 6> kCodes = {0, 1, 2, 32, 33, 31};
  return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<std::size_t>(ink)], text);
}

void TerminalText::line(Ink ink, std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  out_ << paint(ink, text) << '\n';
}

void TerminalText::wrapped(const std::vector<std::string>& items) {
  std::string line;
  int columns = 0;
  for (const std::string& text : items) {
    const std::string item = printable(text);
    const int wanted = columns_of(item) + (line.empty() ? 0 : 3);
    if (columns + wanted > options_.width && !line.empty()) {
      out_ << line << '\n';
      line.clear();
      columns = 0;
    }
    line += (line.empty() ? "" : " · ") + item;
    columns += wanted;
  }
  if (!line.empty()) out_ << line << '\n';
}

void TerminalText::reasons(const View& view) {
  const std::vector<Reason> reasons = collect_reasons(view);
  if (reasons.empty()) return;
  out_ << '\n' << paint(Ink::bold, "Cells without a number") << '\n';
  for (std::size_t i = 0; i < std::min(reasons.size(), kMaxReasons); ++i) {
    const Reason& reason = reasons[i];
    const std::string status(to_string(reason.code));
    out_ << fmt::format("  {} {}{}: {}\n", printable(reason.kernel),
                        paint(ink_of(reason.code), status),
                        reason.cells > 1 ? fmt::format(" ({} cells)", reason.cells) : "",
                        printable(reason.sentence));
  }
  if (reasons.size() > kMaxReasons) {
    out_ << fmt::format("  and {} more reasons: longca report --html shows all\n",
                        reasons.size() - kMaxReasons);
  }
}

std::string TerminalText::figure(const std::string& text, int width, bool is_best) {
  has_best_ = has_best_ || is_best;
  return paint(is_best ? Ink::green : Ink::plain,
               fmt::format("{:>{}}{}", text, width - 1, is_best ? "*" : " "));
}

std::string TerminalText::time(const Record& record, int width) {
  const auto time = metric_of(&record, "time_ms");
  const std::string_view mark = interval_mark(record);
  has_unsettled_ = has_unsettled_ || mark == kUnsettledMark;
  has_no_interval_ = has_no_interval_ || mark == kNoIntervalMark;
  return fmt::format("{:>{}}{:1}", time ? format_figure(*time) : "-", width - 1, mark);
}

void TerminalText::marks(std::string_view group) {
  if (has_best_) {
    out_ << fmt::format("*       fastest of its {}, or a tie with it\n", group);
  }
  if (has_unsettled_) {
    out_ << kUnsettledMark << "       the time limit came before the interval was within 0.5 %\n";
  }
  if (has_no_interval_) {
    out_ << kNoIntervalMark << "       too few repetitions for a confidence interval\n";
  }
}

}  // namespace longca
