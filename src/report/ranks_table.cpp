#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "report/data/ranking.h"
#include "report/page_title.h"
#include "report/ranks_metrics.h"
#include "report/scheme_names.h"
#include "report/table.h"
#include "report/terminal_text.h"

namespace longca {
namespace {

constexpr int kRanksWidth = 5;    ///< "ranks"
constexpr int kRateWidth = 8;     ///< "123.4*"
constexpr int kShareWidth = 5;    ///< "100%", at least
constexpr int kExposedWidth = 8;  ///< "123.4", at least
constexpr int kSentWidth = 11;    ///< "1023 KiB ="
constexpr int kImbalanceWidth = 6;
constexpr int kErrorWidth = 7;
constexpr int kSpreadWidth = 6;
constexpr std::size_t kMaxDifferences = 12;

/// The columns that fit the terminal, and their widths. Optional ones are dropped from the last on.
struct Layout {
  int tokens = 6;
  int time = 0;  ///< time_width
  int scheme = 6;
  int kernel = 0;  ///< 0: all cells have the same
  int exposed = kExposedWidth;
  int share = kShareWidth;
  bool sent = true;
  bool intervals = false;  ///< beside times
  bool error = true;
  bool imbalance = true;
  bool memory = true;
  bool exposed_ms = true;
  bool exposed_share = true;
  bool spread = false;  ///< of draws
  std::vector<std::string> left_out{};

  int left() const {
    return tokens + kGap + kRanksWidth + kGap + scheme + (kernel > 0 ? kGap + kernel : 0);
  }
  int pass() const {
    return kRateWidth + time + (exposed_ms ? exposed : 0) + (exposed_share ? share : 0) +
           (sent ? kSentWidth : 0);
  }
  int width(int passes) const {
    return left() + passes * (kGap + pass()) + (imbalance ? kGap + kImbalanceWidth : 0) +
           (error ? kGap + kErrorWidth : 0) + (memory ? kGap + kMemoryWidth : 0) +
           (spread ? kGap + kSpreadWidth : 0);
  }
};

/// "-0.000352", or "-" where it was not measured.
std::string exposed_text(const Record* record) {
  const auto exposed = metric_of(record, "exposed_comm_ms");
  return exposed ? format_figure(*exposed) : "-";
}

/// "-4%".
std::string share_text(const Record* record) {
  const auto percent = exposed_percent(record);
  return percent ? format_percent(*percent) + "%" : "-";
}

Layout layout_for(const View& view, int width) {
  Layout layout;
  layout.intervals = time_width(view, true) > time_width(view, false);
  layout.spread = view.has_draws;
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      widen(layout.tokens, format_tokens(group.tokens));
      for (const ViewRow& row : group.rows) widen(layout.scheme, printable(row.scheme));
    }
  }
  for (const Record* record : view.records()) {  // with a space before
    widen(layout.exposed, ' ' + exposed_text(record));
    widen(layout.share, ' ' + share_text(record));
  }
  if (view.kernels.size() > 1) {
    layout.kernel = 6;
    for (const std::string& kernel : view.kernels) widen(layout.kernel, printable(kernel));
  }
  const auto passes = static_cast<int>(std::ranges::count(view.has_pass, true));
  layout.left_out = leave_out({{&layout.exposed_ms, "exposed ms"},
                               {&layout.memory, "memory"},
                               {&layout.imbalance, "imbal."},
                               {&layout.error, "error"},
                               {&layout.intervals, "±"},
                               {&layout.sent, "sent"},
                               {&layout.exposed_share, "exp."}},
                              [&] {
                                layout.time = time_width(view, layout.intervals);
                                return layout.width(passes) <= width;
                              });
  return layout;
}

class RanksTablePrinter {
 public:
  RanksTablePrinter(std::ostream& out, const View& view, const TableOptions& options)
      : out_(out), text_(out, options), view_(view), layout_(layout_for(view, options.width)) {}

  void print(std::span<const Record> records) {
    print_heading(records);
    text_.summary(view_);
    text_.failures(view_);
    for (const ViewSection& section : view_.sections) print_section(section);
    text_.refusals(view_);
    print_differences();
    print_legend();
  }

 private:
  void print_heading(std::span<const Record> records) {
    const std::string simulated = printable(simulated_text(records));
    const std::string title = simulated.empty() ? "Over ranks" : "Over ranks, " + simulated;
    text_.sentence(title + ": " + describe_counts(view_), kGap, Ink::bold);
    std::vector<std::string> items;
    if (layout_.kernel == 0) items.push_back("kernel " + view_.kernels.front());
    for (const std::string& item : axis_items(view_.common)) items.push_back(item);
    for (const std::string& setting : scheme_settings(records)) items.push_back(setting);
    text_.wrapped(items);
    text_.origins(records);
  }

  void print_section(const ViewSection& section) {
    if (!section.setting.empty()) {
      out_ << '\n';
      text_.sentence(printable(join_axes(section.setting, " · ")), kGap, Ink::bold);
    }
    const ViewGroup* last = nullptr;
    for (const ViewGroup& group : section.groups) {
      const bool same_mask =
          last != nullptr && last->mask == group.mask && last->setting == group.setting;
      if (!same_mask) print_mask(group);
      print_group(group, same_mask && last->tokens == group.tokens);
      last = &group;
    }
  }

  void print_mask(const ViewGroup& group) {
    std::string passes = fmt::format("{:{}}", printable(group.title()), layout_.left());
    std::string columns = fmt::format("{:>{}}  {:>{}}  {:{}}", "tokens", layout_.tokens, "ranks",
                                      kRanksWidth, "scheme", layout_.scheme);
    if (layout_.kernel > 0) columns += fmt::format("  {:{}}", "kernel", layout_.kernel);
    for (const Pass pass : kPasses) {
      if (!view_.has(pass)) continue;
      passes += fmt::format("  {:>{}}", to_string(pass), layout_.pass());
      columns +=
          fmt::format("  {:>{}} {:>{}} ", view_.unit.name, kRateWidth - 1, "ms", layout_.time - 1);
      if (layout_.exposed_ms) columns += fmt::format("{:>{}}", "exposed", layout_.exposed);
      if (layout_.exposed_share)
        columns += fmt::format("{:>{}}", layout_.exposed_ms ? "%" : "exp.", layout_.share);
      if (layout_.sent) columns += fmt::format("{:>{}}  ", "sent", kSentWidth - 2);
    }
    if (layout_.spread) columns += fmt::format("  {:>{}}", "spread", kSpreadWidth);
    if (layout_.imbalance) columns += fmt::format("  {:>{}}", "imbal.", kImbalanceWidth);
    if (layout_.error) columns += fmt::format("  {:>{}}", "error", kErrorWidth);
    if (layout_.memory) columns += fmt::format("  {:>{}}", "memory", kMemoryWidth);
    out_ << '\n';
    text_.line(Ink::bold, passes);
    text_.line(Ink::dim, columns);
  }

  void print_group(const ViewGroup& group, bool same_tokens) {
    const PassRankings rankings(group);
    bool first = true;
    for (const ViewRow& row : group.rows) {
      std::string line = fmt::format("{:>{}}  {:>{}}  {:{}}",
                                     first && !same_tokens ? format_tokens(group.tokens) : "",
                                     layout_.tokens, first ? std::to_string(group.ranks) : "",
                                     kRanksWidth, printable(row.scheme), layout_.scheme);
      if (layout_.kernel > 0) line += fmt::format("  {:{}}", printable(row.kernel), layout_.kernel);
      for (const Pass pass : kPasses) {
        if (view_.has(pass))
          line += "  " + pass_cell(row.pass(pass), rankings.is_marked(row, pass));
      }
      text_.line(Ink::plain, line + row_cells(row));
      first = false;
    }
  }

  std::string pass_cell(const Record* record, bool is_marked) {
    if (record == nullptr) return fmt::format("{:>{}} {:{}}", "-", kRateWidth - 1, "", rest());
    const auto rate = metric_of(record, "tflops");
    if (!record->status.ok() || !rate) {
      return text_.paint(ink_of(record->status.code),
                         fmt::format("{:>{}} {:{}}", to_string(record->status.code),
                                     kRateWidth + layout_.time - 1, "", rest() - layout_.time));
    }
    return text_.figure(format_figure(*rate * view_.unit.per_tflops), kRateWidth, is_marked) +
           text_.time(*record, layout_.time, layout_.intervals) + communication_text(record);
  }

  /// The width of a pass after its rate.
  int rest() const { return layout_.pass() - kRateWidth; }

  std::string communication_text(const Record* record) {
    const auto exposed = metric_of(record, "exposed_comm_ms");
    const auto percent = exposed_percent(record);
    const auto sent = metric_of(record, "bytes_sent");
    const BytesCheck check = check_bytes(record);
    has_negative_ = has_negative_ ||
                    (layout_.exposed_ms ? exposed.value_or(0) < 0 : percent.value_or(0) <= -0.5);
    has_equal_ = has_equal_ || check == BytesCheck::equal;
    std::string text;
    if (layout_.exposed_ms) text += fmt::format("{:>{}}", exposed_text(record), layout_.exposed);
    if (layout_.exposed_share) text += fmt::format("{:>{}}", share_text(record), layout_.share);
    if (!layout_.sent) return text;
    // The mark has a column of its own.
    return text + fmt::format("{:>{}} {:1}", sent ? format_bytes(*sent) : "-", kSentWidth - 2,
                              mark_of(check));
  }

  std::string row_cells(const ViewRow& row) const {
    std::string text;
    const auto add = [&](bool shown, int width, const std::optional<double>& value, auto format) {
      if (shown) text += fmt::format("  {:>{}}", value ? format(*value) : "-", width);
    };
    add(layout_.spread, kSpreadWidth, spread_of(row), format_spread);
    add(layout_.imbalance, kImbalanceWidth, largest_of(row, "imbalance"),
        [](double ratio) { return fmt::format("{:.2f}", ratio); });
    add(layout_.error, kErrorWidth, largest_error(row), format_error);
    add(layout_.memory, kMemoryWidth, memory_of(view_, row), format_bytes);
    return text;
  }

  /// Lists the cells whose bytes differ from the formula, with both figures.
  void print_differences() {
    const std::vector<const Record*> cells = cells_off_formula(view_);
    if (cells.empty()) return;
    out_ << '\n' << text_.paint(Ink::bold, "Bytes sent that are not the formula's") << '\n';
    for (std::size_t i = 0; i < std::min(cells.size(), kMaxDifferences); ++i) {
      const Case& c = cells[i]->c;
      const double padding = metric_of(cells[i], "padding_tokens").value_or(0);
      text_.sentence(printable(fmt::format(
                         "  {} {} {}, {} ranks, {}: sent {:.0f}, formula {:.0f}{}", *c.scheme,
                         c.mask, format_tokens(c.tokens), c.ranks.value_or(1), to_string(c.pass),
                         *metric_of(cells[i], "bytes_sent"), *metric_of(cells[i], "bytes_formula"),
                         padding > 0 ? fmt::format(", {:.0f} rows of padding", padding) : "")),
                     2 * kGap);
    }
    if (cells.size() > kMaxDifferences) {
      text_.sentence(fmt::format("  and {} more cells: longca report --csv has all",
                                 cells.size() - kMaxDifferences));
    }
  }

  void print_legend() {
    out_ << '\n' << view_.unit.name << " are per rank.\n";
    const auto add = [&](bool shown, std::string_view sentence) {
      if (shown) text_.sentence(sentence);
    };
    text_.marks("mask, length and number of ranks");
    const std::string noise = has_negative_ ? "; below 0: noise" : "";
    add(layout_.exposed_ms,
        "exposed time that communication adds to the ranks' steps, ms and share" + noise);
    add(layout_.exposed_share && !layout_.exposed_ms,
        "exp.    share of the time that communication adds to the ranks' steps" + noise);
    add(layout_.sent && has_equal_,
        "sent    by the rank that sends most in one pass; = equals the scheme's formula to the "
        "byte");
    add(layout_.spread, kSpreadLegend);
    add(layout_.imbalance, "imbal.  allowed cells that a rank computes, largest over mean");
    add(layout_.error, kErrorLegend);
    if (layout_.memory) {
      text_.sentence(fmt::format("memory  {} peak of the rank that needs most{}",
                                 to_string(memory_pass(view_)), memory_gaps(view_)));
    }
    text_.left_out(layout_.left_out);
  }

  std::ostream& out_;
  TerminalText text_;
  const View& view_;
  Layout layout_;
  bool has_equal_ = false;
  bool has_negative_ = false;  // a share of exposed time
};

}  // namespace

void print_ranks_table(std::ostream& out, std::span<const Record> records,
                       const TableOptions& options) {
  const View view = make_view(records);
  RanksTablePrinter(out, view, options).print(records);
}

}  // namespace longca
