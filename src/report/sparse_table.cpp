#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "report/table.h"
#include "report/terminal_text.h"

namespace longca {
namespace {

constexpr int kUnitWidth = 7;   ///< "TFLOP/s"
constexpr int kRatioWidth = 9;  ///< "÷ dense", "12.34*"
constexpr int kTotalWidth = 8;  ///< "total"
constexpr int kShareWidth = 6;  ///< "12.3%"
constexpr const char* kKeptMass = "kept mass";
constexpr const char* kErrorFull = "error of full";

/// The columns that fit the terminal, and their widths. Optional ones are dropped from the last on.
struct SparseLayout {
  int tokens = 6;
  int kernel = 6;
  int break_even = 10;
  int densities = 0;
  bool total = false;
  bool share = false;
  bool memory = true;
  bool rate = true;
  std::vector<std::string> left_out{};

  int left() const { return tokens + kGap + kernel; }
  /// The width of a density's columns up to the ratio and its mark, without the gap before them.
  int ratio_end() const { return kRatioWidth + (rate ? kUnitWidth : 0); }
  int density() const {
    return ratio_end() + (total ? kTotalWidth : 0) + (share ? kShareWidth : 0);
  }
  int width() const {
    return left() + densities * (kGap + density()) + kGap + break_even +
           (memory ? kGap + kMemoryWidth : 0);
  }
};

SparseLayout layout_for(const DensityTable& table, int width) {
  SparseLayout layout;
  layout.densities = static_cast<int>(table.densities.size());
  layout.total = table.has("end_to_end_ms");
  layout.share = layout.total && table.has("selection_ms");
  if (table.has("kept_mass")) widen(layout.kernel, kKeptMass);
  if (table.has("error_full")) widen(layout.kernel, kErrorFull);
  for (const DensityGroup& group : table.groups) {
    widen(layout.tokens, format_tokens(group.tokens));
    for (const DensityLine& line : group.lines) {
      if (line.has_number()) widen(layout.kernel, printable(line.kernel));
      widen(layout.break_even, describe_break_even(line.kernel_time));
    }
  }
  layout.left_out = leave_out({{&layout.rate, "rate"},
                               {&layout.memory, "memory"},
                               {&layout.share, "sel."},
                               {&layout.total, "total"}},
                              [&] { return layout.width() <= width; });
  return layout;
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? format_figure(*ratio) : "-";
}

class SparseTablePrinter {
 public:
  SparseTablePrinter(std::ostream& out, const DenseComparison& comparison,
                     const TableOptions& options)
      : out_(out), text_(out, options), comparison_(comparison), width_(options.width) {}

  void print() {
    text_.sentence("Block-sparse attention beside dense: time ÷ that of the fastest dense kernel",
                   kGap, Ink::bold);
    text_.wrapped(axis_items(comparison_.common));
    for (const DensityTable& table : comparison_.tables) {
      if (table.has_number()) print_table(table);
    }
    print_legend();
  }

 private:
  void print_table(const DensityTable& table) {
    layout_ = layout_for(table, width_);
    has_total_ = has_total_ || layout_.total;
    has_share_ = has_share_ || layout_.share;
    for (const std::string& column : layout_.left_out) {
      if (std::ranges::find(left_out_, column) == left_out_.end()) left_out_.push_back(column);
    }
    out_ << '\n';
    std::string title = table.title();
    if (!table.setting.empty()) title += " · " + join_axes(table.setting, " · ");
    text_.sentence(printable(title), kGap, Ink::bold);
    std::string densities = fmt::format("{:>{}}", "density", layout_.left());
    std::string columns =
        fmt::format("{:>{}}  {:{}}", "tokens", layout_.tokens, "kernel", layout_.kernel);
    for (const double density : table.densities) {
      densities += "  " + at_ratio(format_density(density));
      columns += column_titles();
    }
    columns += fmt::format("  {:>{}}", "break-even", layout_.break_even);
    if (layout_.memory) columns += fmt::format("  {:>{}}", "memory", kMemoryWidth);
    text_.line(Ink::dim, densities);
    text_.line(Ink::dim, columns);
    for (const DensityGroup& group : table.groups) {
      if (group.has_number()) print_group(table, group);
    }
  }

  std::string column_titles() const {
    std::string text = fmt::format("  {:>{}}", "÷ dense ", kRatioWidth);
    if (layout_.rate)
      text = fmt::format("  {:>{}}", comparison_.unit.name, kUnitWidth) + text.substr(2);
    if (layout_.total) text += fmt::format("{:>{}}", "total", kTotalWidth);
    if (layout_.share) text += fmt::format("{:>{}}", "sel.", kShareWidth);
    return text;
  }

  /// A density's columns, empty but for this text, which ends where the ratio does.
  std::string at_ratio(const std::string& text) const {
    return fmt::format("{:>{}}{:{}}", text, layout_.ratio_end() - 1, "",
                       layout_.density() - layout_.ratio_end() + 1);
  }

  void print_group(const DensityTable& table, const DensityGroup& group) {
    print_dense(group);
    for (const DensityLine& line : group.lines) {
      const bool has_columns = group.dense != nullptr || layout_.rate;
      if (line.has_number() && has_columns) print_line(table, group, line);
    }
    print_cost(table, kKeptMass, [&](double density) {
      const auto mass = group.metric_at(density, "kept_mass");
      return mass ? fmt::format("{:.3f}", *mass) : "";
    });
    print_cost(table, kErrorFull, [&](double density) {
      const auto error = group.largest_at(density, "error_full");
      return error ? format_figure(*error) : "";
    });
  }

  void print_dense(const DensityGroup& group) {
    const std::string tokens = fmt::format("{:>{}}", format_tokens(group.tokens), layout_.tokens);
    if (group.dense == nullptr) {
      text_.line(Ink::plain, tokens + "  no dense kernel was measured");
      return;
    }
    const auto rate = metric_of(group.dense, "tflops");
    const auto memory = metric_of(group.dense, "peak_bytes");
    std::string text =
        fmt::format("dense: {}, {}, {} ms", group.dense->c.kernel, group.dense->c.mask,
                    format_figure(*metric_of(group.dense, "time_ms")));
    if (rate) {
      text += fmt::format(", {} {}", format_figure(*rate * comparison_.unit.per_tflops),
                          comparison_.unit.name);
    }
    if (memory) text += ", " + format_bytes(*memory);
    if (const std::string other = group.dense_difference(); !other.empty()) text += ", " + other;
    text_.sentence(tokens + "  " + printable(text), layout_.tokens + kGap);
  }

  void print_line(const DensityTable& table, const DensityGroup& group, const DensityLine& line) {
    std::string text =
        fmt::format("{:{}}  {:{}}", "", layout_.tokens, printable(line.kernel), layout_.kernel);
    std::optional<double> memory;
    for (const double density : table.densities) {
      const Record* cell = line.at(density);
      text += std::string(kGap, ' ') + density_cell(group, cell);
      keep_larger(memory, metric_of(cell, "peak_bytes"));
    }
    const std::string break_even = describe_break_even(line.kernel_time);
    text += fmt::format("  {:>{}}", break_even.empty() ? "-" : break_even, layout_.break_even);
    if (layout_.memory) {
      text += fmt::format("  {:>{}}", memory ? format_bytes(*memory) : "-", kMemoryWidth);
    }
    text_.line(Ink::plain, text);
  }

  std::string density_cell(const DensityGroup& group, const Record* cell) {
    const auto rate = metric_of(cell, "tflops");
    if (cell == nullptr || !cell->status.ok() || !rate) {
      if (cell != nullptr && !cell->status.ok()) marks_.insert(cell->status.code);
      return at_ratio(cell == nullptr ? "-" : std::string(status_mark(cell->status.code)));
    }
    std::string text;
    if (layout_.rate) {
      text += fmt::format("{:>{}}", format_figure(*rate * comparison_.unit.per_tflops), kUnitWidth);
    }
    text += text_.figure(ratio_text(time_of_dense(cell, group.dense)), kRatioWidth,
                         group.is_marked(cell));
    if (layout_.total) {
      text +=
          fmt::format("{:>{}}", ratio_text(end_to_end_of_dense(cell, group.dense)), kTotalWidth);
    }
    if (layout_.share) {
      const auto share = selection_share(cell);
      text +=
          fmt::format("{:>{}}", share ? fmt::format("{:.0f}%", 100 * *share) : "-", kShareWidth);
    }
    return text;
  }

  /// What the blocks cost in quality, in a line below the kernels.
  template <typename TextAt>
  void print_cost(const DensityTable& table, const char* name, TextAt text_at) {
    std::string line = fmt::format("{:{}}  {:{}}", "", layout_.tokens, name, layout_.kernel);
    bool has_any = false;
    for (const double density : table.densities) {
      const std::string text = text_at(density);
      has_any = has_any || !text.empty();
      line += "  " + at_ratio(text.empty() ? "-" : text);
    }
    if (has_any) text_.line(Ink::dim, line);
  }

  void print_legend() {
    constexpr int kIndent = 15;  // of "error of full  "
    out_ << '\n';
    const auto add = [&](bool shown, std::string_view sentence) {
      if (shown) text_.sentence(sentence, kIndent);
    };
    add(text_.has_best(),
        "*              fastest of its mask, length and density, or a tie with it: within 1 %, or "
        "95 % intervals overlap");
    add(true,
        "break-even     density up to which a kernel is faster than dense, interpolated between "
        "those measured; always, never: at all of them");
    add(has_total_, "total          selection, planning and kernel ÷ the same dense time");
    add(has_share_, "sel.           selection's share of that");
    add(comparison_.has("kept_mass"),
        "kept mass      share of full attention's probability that lies in the kept blocks");
    add(comparison_.has("error_full"), "error of full  relative error of O against full attention");
    for (const StatusCode code : marked_statuses()) {
      if (marks_.contains(code)) {
        add(true, fmt::format("{}              {}", status_mark(code), status_text(code)));
      }
    }
    text_.left_out(left_out_);
  }

  std::ostream& out_;
  TerminalText text_;
  const DenseComparison& comparison_;
  int width_;
  SparseLayout layout_;  // of the table that is being printed
  bool has_total_ = false;
  bool has_share_ = false;
  std::set<StatusCode> marks_;         // that were printed
  std::vector<std::string> left_out_;  // columns of some table
};

}  // namespace

void print_sparse_table(std::ostream& out, const DenseComparison& comparison,
                        const TableOptions& options) {
  if (comparison.tables.empty()) return;
  SparseTablePrinter(out, comparison, options).print();
}

}  // namespace longca
