#include "report/table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/launch/rank_machine.h"
#include "core/printable.h"
#include "report/data/ranking.h"
#include "report/terminal_text.h"
#include "report/view.h"

namespace longca {
namespace {

constexpr int kRateWidth = 8;  ///< "123.4*"
constexpr int kErrorWidth = 7;
constexpr int kSpreadWidth = 6;
constexpr int kMinWidth = 40;  ///< of a terminal that is believed
constexpr int kMaxWidth = 10'000;

/// The columns that fit the terminal, and their widths.
struct Layout {
  int mask = 4;
  int tokens = 6;
  int time = 0;    ///< time_width
  int status = 0;  ///< of the longest status of a cell, with a space behind it
  int kernel = 6;
  bool times = false;      ///< as error and memory: where a row has one
  bool intervals = false;  ///< beside times
  bool error = false;
  bool memory = false;
  bool spread = false;  ///< of draws
  std::vector<std::string> left_out{};
};

class TablePrinter {
 public:
  TablePrinter(std::ostream& out, const View& view, const TableOptions& options)
      : out_(out), text_(out, options), view_(view), layout_(layout_for(view, options.width)) {}

  void print(std::span<const Record> records) {
    print_heading(records);
    text_.summary(view_);
    text_.failures(view_);
    for (const ViewSection& section : view_.sections) print_section(section);
    text_.refusals(view_);
    print_legend();
  }

 private:
  static std::string label(const ViewGroup& group) { return printable(group.title()); }

  static int passes_of(const View& view) {
    return static_cast<int>(std::ranges::count(view.has_pass, true));
  }

  /// Room for a status is needed only where no column of times follows that it may reach into.
  static int rate_width(const Layout& layout) {
    return layout.times ? kRateWidth : std::max(kRateWidth, layout.status);
  }
  static int pass_width(const Layout& layout) {
    return rate_width(layout) + (layout.times ? layout.time : 0);
  }

  static int width_of(const Layout& layout, int passes) {
    return layout.mask + kGap + layout.tokens + kGap + layout.kernel +
           passes * (kGap + pass_width(layout)) + (layout.error ? kGap + kErrorWidth : 0) +
           (layout.memory ? kGap + kMemoryWidth : 0) + (layout.spread ? kGap + kSpreadWidth : 0);
  }

  /// What a row needs that not all have: room for its status, columns for what it has measured.
  static void add_row(Layout& layout, const View& view, const ViewRow& row) {
    for (const Pass pass : kPasses) {
      const Record* record = view.has(pass) ? row.pass(pass) : nullptr;
      if (record == nullptr) continue;
      if (record->status.ok() && metric_of(record, "tflops")) {
        layout.times = layout.times || metric_of(record, "time_ms");
      } else {
        widen(layout.status, std::string(to_string(record->status.code)) + ' ');
      }
    }
    layout.error = layout.error || largest_error(row);
    layout.memory = layout.memory || memory_of(view, row);
  }

  static Layout layout_for(const View& view, int width) {
    Layout layout;
    layout.intervals = time_width(view, true) > time_width(view, false);
    layout.spread = view.has_draws;
    for (const ViewSection& section : view.sections) {
      for (const ViewGroup& group : section.groups) {
        widen(layout.mask, label(group));
        widen(layout.tokens, format_tokens(group.tokens));
        for (const ViewRow& row : group.rows) add_row(layout, view, row);
      }
    }
    for (const std::string& kernel : view.kernels) widen(layout.kernel, printable(kernel));
    layout.left_out = leave_out({{&layout.memory, "memory"},
                                 {&layout.error, "error"},
                                 {&layout.intervals, "±"},
                                 {&layout.times, "ms"}},
                                [&] {
                                  layout.time = time_width(view, layout.intervals);
                                  return width_of(layout, passes_of(view)) <= width;
                                });
    return layout;
  }

  void print_heading(std::span<const Record> records) {
    text_.sentence(describe_counts(view_), kGap, Ink::bold);
    text_.wrapped(axis_items(view_.common));
    text_.origins(records);
  }

  void print_section(const ViewSection& section) {
    out_ << '\n';
    if (!section.setting.empty()) {
      text_.sentence(printable(join_axes(section.setting, " · ")), kGap, Ink::bold);
    }
    print_column_titles();
    std::string last_mask;
    for (const ViewGroup& group : section.groups) {
      print_group(group, label(group) == last_mask);
      last_mask = label(group);
    }
  }

  void print_column_titles() {
    const int left = layout_.mask + kGap + layout_.tokens + kGap + layout_.kernel;
    std::string passes = fmt::format("{:{}}", "", left);
    std::string columns = fmt::format("{:{}}  {:>{}}  {:{}}", "mask", layout_.mask, "tokens",
                                      layout_.tokens, "kernel", layout_.kernel);
    for (const Pass pass : kPasses) {
      if (!view_.has(pass)) continue;
      const int width = pass_width(layout_);
      passes += fmt::format("  {:>{}}", to_string(pass), width - 1) + ' ';
      columns += fmt::format("  {:>{}} ", view_.unit.name, rate_width(layout_) - 1);
      if (layout_.times) columns += fmt::format("{:>{}} ", "ms", layout_.time - 1);
    }
    if (layout_.spread) columns += fmt::format("  {:>{}}", "spread", kSpreadWidth);
    if (layout_.error) columns += fmt::format("  {:>{}}", "error", kErrorWidth);
    if (layout_.memory) columns += fmt::format("  {:>{}}", "memory", kMemoryWidth);
    text_.line(Ink::dim, passes);
    text_.line(Ink::bold, columns);
  }

  void print_group(const ViewGroup& group, bool same_mask) {
    const PassRankings rankings(group);
    bool first = true;
    for (const ViewRow& row : group.rows) {
      const std::string mask = first && !same_mask ? label(group) : "";
      const std::string tokens = first ? format_tokens(group.tokens) : "";
      std::string line = fmt::format("{:{}}  {:>{}}  {:{}}", mask, layout_.mask, tokens,
                                     layout_.tokens, printable(row.kernel), layout_.kernel);
      for (const Pass pass : kPasses) {
        if (view_.has(pass))
          line += "  " + pass_cell(row.pass(pass), rankings.is_marked(row, pass));
      }
      text_.line(Ink::plain, line + spread_error_memory(row));
      first = false;
    }
  }

  std::string pass_cell(const Record* record, bool is_marked) {
    const int width = pass_width(layout_);
    if (record == nullptr) return fmt::format("{:>{}} ", "-", width - 1);
    const auto rate = metric_of(record, "tflops");
    if (!record->status.ok() || !rate) {
      const std::string status = fmt::format("{:>{}} ", to_string(record->status.code), width - 1);
      return text_.paint(ink_of(record->status.code), status);
    }
    std::string text =
        text_.figure(format_figure(*rate * view_.unit.per_tflops), rate_width(layout_), is_marked);
    if (layout_.times) text += text_.time(*record, layout_.time, layout_.intervals);
    return text;
  }

  std::string spread_error_memory(const ViewRow& row) const {
    const auto error = largest_error(row);
    const auto memory = memory_of(view_, row);
    std::string text;
    const auto spread = spread_of(row);
    if (layout_.spread)
      text += fmt::format("  {:>{}}", spread ? format_spread(*spread) : "-", kSpreadWidth);
    if (layout_.error)
      text += fmt::format("  {:>{}}", error ? format_error(*error) : "-", kErrorWidth);
    if (layout_.memory)
      text += fmt::format("  {:>{}}", memory ? format_bytes(*memory) : "-", kMemoryWidth);
    return text;
  }

  void print_legend() {
    out_ << '\n';
    text_.marks("mask and length");
    if (layout_.spread) text_.sentence(kSpreadLegend);
    if (layout_.error) text_.sentence(kErrorLegend);
    if (layout_.memory) {
      text_.sentence(
          fmt::format("memory  {} peak{}", to_string(memory_pass(view_)), memory_gaps(view_)));
    }
    text_.left_out(layout_.left_out);
  }

  std::ostream& out_;
  TerminalText text_;
  const View& view_;
  Layout layout_;
};

}  // namespace

TableOptions terminal_table_options() {
  TableOptions options;
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  const auto take = [&](int width) {
    const bool is_valid = width >= kMinWidth && width <= kMaxWidth;
    if (is_valid) options.width = width;
    return is_valid;
  };
  const char* columns = std::getenv("COLUMNS");
  winsize size{};
  if ((columns == nullptr || !take(std::atoi(columns))) && is_terminal &&
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    take(size.ws_col);
  }
  const char* terminal = std::getenv("TERM");
  const bool knows_colors = terminal != nullptr && std::string_view(terminal) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  const bool wants_none = no_color != nullptr && *no_color != '\0';
  // mpirun gives its processes pseudo-terminals, and what it reads there may go into a file.
  options.color = is_terminal && knows_colors && !wants_none && !find_mpi_launch();
  return options;
}

void print_table(std::ostream& out, std::span<const Record> records, const TableOptions& options) {
  if (records.empty()) {
    out << "no records\n";
    return;
  }
  const SplitRecords split = split_records(records);
  if (!split.single.empty()) {
    const View view = make_view(split.single);
    if (!split.over_ranks.empty()) out << "On one device: ";
    TablePrinter(out, view, options).print(split.single);
    const DenseComparison comparison = compare_with_dense(split.single);
    if (!comparison.tables.empty()) out << "\n\n";
    print_sparse_table(out, comparison, options);
  }
  if (split.over_ranks.empty()) return;
  if (!split.single.empty()) out << "\n\n";
  print_ranks_table(out, split.over_ranks, options);
}

}  // namespace longca
