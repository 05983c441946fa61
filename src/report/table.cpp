#include "report/table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ostream>

#include "report/view.h"

namespace longca {
namespace {

constexpr int kGap = 2;         ///< spaces between columns
constexpr int kRateWidth = 8;   ///< "123.4*"
constexpr int kTimeWidth = 8;   ///< "12345.6~"
constexpr int kWordWidth = 12;  ///< "unsupported", which may reach into the time column
constexpr int kErrorWidth = 8;
constexpr int kMemoryWidth = 9;
constexpr std::size_t kMaxReasons = 12;

enum class Ink { plain, bold, dim, green, yellow, red };

/// What fits the width, and how wide it is.
struct Layout {
  int mask = 4;
  int tokens = 6;
  int kernel = 6;
  bool times = true;
  bool error = true;
  bool memory = true;
};

class TablePrinter {
 public:
  TablePrinter(std::ostream& out, const View& view, const TableOptions& options)
      : out_(out), view_(view), options_(options), layout_(layout_for(view, options.width)) {}

  void print(std::span<const Record> records) {
    print_heading(records);
    for (const ViewSection& section : view_.sections) print_section(section);
    print_reasons();
    print_legend();
  }

 private:
  static std::string label(const ViewGroup& group) {
    const std::string setting = join_axes(group.setting, ", ");
    return printable(setting.empty() ? group.mask : fmt::format("{} ({})", group.mask, setting));
  }

  static int passes_of(const View& view) { return view.has_pass[0] + view.has_pass[1]; }

  static int rate_width(const Layout& layout) { return layout.times ? kRateWidth : kWordWidth; }
  static int pass_width(const Layout& layout) {
    return rate_width(layout) + (layout.times ? kTimeWidth : 0);
  }

  static int width_of(const Layout& layout, int passes) {
    return layout.mask + kGap + layout.tokens + kGap + layout.kernel +
           passes * (kGap + pass_width(layout)) + (layout.error ? kGap + kErrorWidth : 0) +
           (layout.memory ? kGap + kMemoryWidth : 0);
  }

  static Layout layout_for(const View& view, int width) {
    Layout layout;
    const auto widen = [](int& column, const std::string& text) {
      column = std::max(column, static_cast<int>(text.size()));
    };
    for (const ViewSection& section : view.sections) {
      for (const ViewGroup& group : section.groups) {
        widen(layout.mask, label(group));
        widen(layout.tokens, format_tokens(group.tokens));
      }
    }
    for (const std::string& kernel : view.kernels) widen(layout.kernel, printable(kernel));
    for (bool* column : {&layout.memory, &layout.error, &layout.times}) {
      if (width_of(layout, passes_of(view)) > width) *column = false;
    }
    return layout;
  }

  std::string paint(Ink ink, const std::string& text) const {
    if (!options_.color || ink == Ink::plain) return text;
    constexpr std::array<int, 6> kCodes = {0, 1, 2, 32, 33, 31};
    return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<std::size_t>(ink)], text);
  }

  static Ink ink_of(StatusCode status) {
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

  void print_heading(std::span<const Record> records) {
    out_ << paint(Ink::bold, describe_counts(view_)) << '\n';
    print_wrapped(view_.common);
    const std::string machine = describe_machine(records.back());
    if (!machine.empty()) out_ << machine << '\n';
  }

  void print_wrapped(const AxisTexts& axes) {
    std::string line;
    int columns = 0;
    for (const auto& [name, value] : axes) {
      const std::string item = printable(fmt::format("{} {}", name, value));
      const int wanted = static_cast<int>(item.size()) + (line.empty() ? 0 : 3);
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

  void print_section(const ViewSection& section) {
    out_ << '\n';
    if (!section.setting.empty()) {
      out_ << paint(Ink::bold, join_axes(section.setting, " · ")) << '\n';
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
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      if (!view_.has(pass)) continue;
      const int width = pass_width(layout_);
      passes += fmt::format("  {:>{}}", to_string(pass), width - 1) + ' ';
      columns += fmt::format("  {:>{}} ", view_.unit.name, rate_width(layout_) - 1);
      if (layout_.times) columns += fmt::format("{:>{}} ", "ms", kTimeWidth - 1);
    }
    if (layout_.error) columns += fmt::format("  {:>{}}", "error", kErrorWidth);
    if (layout_.memory) columns += fmt::format("  {:>{}}", "memory", kMemoryWidth);
    print_line(Ink::dim, passes);
    print_line(Ink::bold, columns);
  }

  void print_line(Ink ink, std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    out_ << paint(ink, line) << '\n';
  }

  void print_group(const ViewGroup& group, bool same_mask) {
    bool first = true;
    for (const ViewRow& row : group.rows) {
      const std::string mask = first && !same_mask ? label(group) : "";
      const std::string tokens = first ? format_tokens(group.tokens) : "";
      std::string line = fmt::format("{:{}}  {:>{}}  {:{}}", mask, layout_.mask, tokens,
                                     layout_.tokens, printable(row.kernel), layout_.kernel);
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        if (view_.has(pass)) line += "  " + pass_cell(row.pass(pass), group.best(pass));
      }
      print_line(Ink::plain, line + error_and_memory(row));
      first = false;
    }
  }

  std::string pass_cell(const Record* record, const Record* best) {
    const int width = pass_width(layout_);
    if (record == nullptr) return fmt::format("{:>{}} ", "-", width - 1);
    const auto rate = metric_of(record, "tflops");
    if (!record->status.ok() || !rate) {
      const std::string word = fmt::format("{:>{}} ", to_string(record->status.code), width - 1);
      return paint(ink_of(record->status.code), word);
    }
    const bool is_best = record == best;
    has_best_ = has_best_ || is_best;
    std::string text = paint(is_best ? Ink::green : Ink::plain,
                             fmt::format("{:>{}}{}", format_figure(*rate * view_.unit.per_tflops),
                                         rate_width(layout_) - 1, is_best ? "*" : " "));
    if (layout_.times) text += time_text(*record);
    return text;
  }

  std::string time_text(const Record& record) {
    const auto time = metric_of(&record, "time_ms");
    const bool unsettled = record.stop == "time_limit";
    has_unsettled_ = has_unsettled_ || unsettled;
    return fmt::format("{:>{}}{}", time ? format_figure(*time) : "-", kTimeWidth - 1,
                       unsettled ? "~" : " ");
  }

  std::string error_and_memory(const ViewRow& row) const {
    std::optional<double> error;
    std::optional<double> memory;
    for (const Record* record : row.passes) {
      if (const auto e = largest_error(record)) error = std::max(error.value_or(0), *e);
      if (const auto m = metric_of(record, "peak_bytes")) memory = std::max(memory.value_or(0), *m);
    }
    std::string text;
    if (layout_.error)
      text += fmt::format("  {:>{}}", error ? format_error(*error) : "-", kErrorWidth);
    if (layout_.memory)
      text += fmt::format("  {:>{}}", memory ? format_bytes(*memory) : "-", kMemoryWidth);
    return text;
  }

  void print_reasons() {
    const std::vector<Reason> reasons = collect_reasons(view_);
    if (reasons.empty()) return;
    out_ << '\n' << paint(Ink::bold, "Cells without a number") << '\n';
    for (std::size_t i = 0; i < std::min(reasons.size(), kMaxReasons); ++i) {
      const Reason& reason = reasons[i];
      const std::string word(to_string(reason.code));
      out_ << fmt::format("  {} {}{}: {}\n", printable(reason.kernel),
                          paint(ink_of(reason.code), word),
                          reason.cells > 1 ? fmt::format(" ({} cells)", reason.cells) : "",
                          printable(reason.sentence));
    }
    if (reasons.size() > kMaxReasons) {
      out_ << fmt::format("  and {} more reasons: longca report --html shows all\n",
                          reasons.size() - kMaxReasons);
    }
  }

  void print_legend() {
    std::string legend;
    const auto add = [&](bool shown, std::string_view sentence) {
      if (shown) legend += fmt::format("{}\n", sentence);
    };
    add(has_best_, "*      fastest kernel of its mask and length");
    add(has_unsettled_, "~      stopped at the time limit before the median was settled");
    add(layout_.error,
        "error  largest relative error of O, dQ, dK, dV against the float64 reference");
    if (!legend.empty()) out_ << '\n' << legend;
  }

  std::ostream& out_;
  const View& view_;
  TableOptions options_;
  Layout layout_;
  bool has_best_ = false;
  bool has_unsettled_ = false;
};

}  // namespace

TableOptions terminal_table_options() {
  TableOptions options;
  if (::isatty(STDOUT_FILENO) == 0) return options;
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.width = size.ws_col;
  options.color = std::getenv("NO_COLOR") == nullptr;
  return options;
}

void print_table(std::ostream& out, std::span<const Record> records, const TableOptions& options) {
  if (records.empty()) {
    out << "no records\n";
    return;
  }
  const std::vector<Record> latest = latest_records(records);
  const View view = make_view(latest);
  TablePrinter(out, view, options).print(latest);
}

}  // namespace longca
