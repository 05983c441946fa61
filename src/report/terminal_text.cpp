#include "report/terminal_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <span>
#include <vector>

#include "core/printable.h"
#include "report/data/summary.h"

namespace longca {
namespace {

constexpr std::size_t kMaxReasons = 12;
constexpr int kTimeWidth = 8;  ///< " 12345~", of a column at least

/// "±0.4%"; the interval of two rounds may be huge.
std::string spread_text(double pct) {
  if (pct >= 999.5) return "±>999%";
  return fmt::format("±{:.{}f}%", pct, pct < 99.95 ? 1 : 0);
}

/// Whether the interval stands beside the time: of one round where it is wider than was asked for.
bool has_spread(const Record& record) {
  if (!record.metrics.contains("time_ci_pct")) return false;
  return record.rounds_ms.size() > 1 || interval_mark(record) == kUnsettledMark;
}

/// "12.3" or "12.3±0.4%".
std::string time_text(const Record& record, bool intervals) {
  const auto time = metric_of(&record, "time_ms");
  std::string text = time ? format_figure(*time) : "-";
  if (intervals && has_spread(record)) text += spread_text(record.metrics.at("time_ci_pct"));
  return text;
}

/// "12 of 36".
std::string first_text(const Standing& standing) {
  return standing.problems == 0 ? "-" : fmt::format("{} of {}", standing.first, standing.problems);
}

constexpr std::size_t kMaxNames = 6;

/// "sdpa, fa2, flex and 11 more".
std::string kernel_names(const std::vector<std::string>& kernels) {
  const std::size_t named = kernels.size() > kMaxNames ? kMaxNames - 1 : kernels.size();
  std::string text = join_kernels(std::span(kernels).first(named));
  if (named < kernels.size()) text += fmt::format(" and {} more", kernels.size() - named);
  return text;
}

}  // namespace

void widen(int& column, std::string_view text) {
  column = std::max(column, columns_of(text));
}

std::vector<std::string> leave_out(std::initializer_list<OptionalColumn> columns,
                                   const std::function<bool()>& fits) {
  std::vector<std::string> names;
  for (const OptionalColumn& column : columns) {
    if (fits()) break;
    if (!*column.shown) continue;
    *column.shown = false;
    names.emplace_back(column.name);
  }
  return names;
}

int time_width(const View& view, bool intervals) {
  int width = kTimeWidth;
  for (const Record* record : view.records()) {
    if (record->status.ok()) width = std::max(width, columns_of(time_text(*record, intervals)) + 2);
  }
  return width;
}

std::string_view memory_gaps(const View& view) {
  const auto is_gap = [&](const ViewRow& row) {
    return row.pass(memory_pass(view)) == nullptr && largest_of(row, "peak_bytes");
  };
  const auto has_gap = [&](const ViewGroup& group) {
    return std::ranges::any_of(group.rows, is_gap);
  };
  const auto has_gaps = [&](const ViewSection& section) {
    return std::ranges::any_of(section.groups, has_gap);
  };
  return std::ranges::any_of(view.sections, has_gaps) ? "; - for a row without that pass" : "";
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
    if (columns <= options_.width) continue;
    line = with_hanging_indent(line, options_.width, kGap);  // of this item alone
    columns = columns_of(line.substr(line.rfind('\n') + 1));
  }
  if (!line.empty()) out_ << line << '\n';
}

void TerminalText::origins(std::span<const Record> records) {
  const std::string text = printable(describe_origins(records));
  if (!text.empty()) out_ << with_hanging_indent(text, options_.width, kGap) << '\n';
}

void TerminalText::summary(const View& view) {
  int speed_width = 7;
  int first_width = 11;  // "12 of 36"
  const Summary summary = summarize(view);
  const auto shown = [&](RankedWork work) { return summary.has(work); };
  if (summary.rows.size() < 2 || std::ranges::max(summary.problems) < 2) return;
  int name_width = 6;
  for (const SummaryRow& row : summary.rows) widen(name_width, printable(row.name));
  const auto width = [&] { return speed_width + kGap + first_width; };  // of a kind of work
  const auto works = static_cast<int>(std::ranges::count_if(kWorks, shown));
  if (name_width + works * (kGap + width()) > options_.width) {
    speed_width = first_width = 5;
    for (const SummaryRow& row : summary.rows) {
      for (const RankedWork work : kWorks) widen(first_width, first_text(row.at(work)));
    }
  }
  std::string titles = fmt::format("{:{}}", "", name_width);
  std::string columns = fmt::format("{:{}}", view.over_ranks ? "scheme" : "kernel", name_width);
  for (const RankedWork work : kWorks) {
    if (!shown(work)) continue;
    titles += fmt::format("  {:>{}}", to_string(work), width());
    columns += fmt::format("  {:>{}}  {:>{}}", "speed", speed_width, "first", first_width);
  }
  out_ << '\n';
  line(Ink::dim, titles);
  line(Ink::bold, columns);
  for (const SummaryRow& row : summary.rows) {
    std::string text = fmt::format("{:{}}", printable(row.name), name_width);
    for (const RankedWork work : kWorks) {
      const Standing& own = row.at(work);
      if (!shown(work)) continue;
      const std::string speed = own.problems == 0 ? "-" : fmt::format("{:.3f}", own.of_fastest);
      text += fmt::format("  {:>{}}  {:>{}}", speed, speed_width, first_text(own), first_width);
    }
    line(Ink::plain, text);
  }
  sentence("speed: share of the fastest's, geometric mean over the problems it was timed on", kGap,
           Ink::dim);
  sentence("first: in how many of these it is the fastest, or ties with it", kGap, Ink::dim);
}

void TerminalText::failures(const View& view) {
  std::vector<Reason> failed = collect_reasons(view);
  std::erase_if(failed, [](const Reason& reason) { return !is_failure(reason.code); });
  reasons("Cells that failed", failed);
}

void TerminalText::refusals(const View& view) {
  std::vector<Reason> refused = collect_reasons(view);
  std::erase_if(refused, [](const Reason& reason) { return is_failure(reason.code); });
  reasons("Cells that cannot run", refused);
}

void TerminalText::reasons(std::string_view title, const std::vector<Reason>& reasons) {
  if (reasons.empty()) return;
  out_ << '\n' << paint(Ink::bold, std::string(title)) << '\n';
  for (std::size_t i = 0; i < std::min(reasons.size(), kMaxReasons); ++i) {
    const Reason& reason = reasons[i];
    const std::string status(to_string(reason.code));
    const std::string names = printable(kernel_names(reason.kernels));
    const std::string text = fmt::format(
        "  {} {}{}: {}", names, status,
        reason.cells > 1 ? fmt::format(" ({} cells)", reason.cells) : "", reason.sentence);
    std::string lines = with_hanging_indent(printable(text), options_.width, 4);
    const std::size_t at = lines.find(status, std::min(names.size() + 2, lines.size()));
    if (at != lines.npos) lines.replace(at, status.size(), paint(ink_of(reason.code), status));
    out_ << lines << '\n';
  }
  if (reasons.size() > kMaxReasons) {
    sentence(fmt::format("  and {} more reasons: longca report --html shows all",
                         reasons.size() - kMaxReasons));
  }
}

std::string TerminalText::figure(const std::string& text, int width, bool is_best) {
  has_best_ = has_best_ || is_best;
  return paint(is_best ? Ink::green : Ink::plain,
               fmt::format("{:>{}}{}", text, width - 1, is_best ? "*" : " "));
}

std::string TerminalText::time(const Record& record, int width, bool intervals) {
  const std::string_view mark = interval_mark(record);
  has_unsettled_ = has_unsettled_ || mark == kUnsettledMark;
  has_no_interval_ = has_no_interval_ || mark == kNoIntervalMark;
  if (intervals && has_spread(record)) {
    (record.rounds_ms.size() > 1 ? has_rounds_ : has_repetitions_) = true;
  }
  return fmt::format("{:>{}}{:1}", time_text(record, intervals), width - 1, mark);
}

void TerminalText::sentence(std::string_view text, int indent, Ink ink) {
  out_ << paint(ink, with_hanging_indent(text, options_.width, indent)) << '\n';
}

void TerminalText::marks(std::string_view group) {
  if (has_best_) {
    sentence(fmt::format(
        "*       fastest of its {}, or a tie with it: within 1 %, or 95 % intervals overlap",
        group));
  }
  if (has_rounds_ || has_repetitions_) {
    sentence(fmt::format("±       half the 95 % interval of the time over the {}",
                         !has_rounds_       ? "repetitions"
                         : has_repetitions_ ? "rounds, or of one round over the repetitions"
                                            : "rounds"));
  }
  if (has_unsettled_) {
    sentence(fmt::format("{}       the time limit came before the interval was within 0.5 %",
                         kUnsettledMark));
  }
  if (has_no_interval_) {
    sentence(
        fmt::format("{}       too few repetitions for a confidence interval", kNoIntervalMark));
  }
}

void TerminalText::left_out(const std::vector<std::string>& columns) {
  if (columns.empty()) return;
  sentence(fmt::format("left out at {} columns: {} (--csv and --html have {})", options_.width,
                       fmt::join(columns, ", "), columns.size() == 1 ? "it" : "them"));
}

}  // namespace longca
