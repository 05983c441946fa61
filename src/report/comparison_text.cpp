#include "report/comparison_text.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/suite/axes.h"
#include "core/counted.h"
#include "core/printable.h"
#include "report/format.h"
#include "report/terminal_text.h"

namespace longca {
namespace {

constexpr const char* kAlwaysNamed[] = {"kernel", "mask", "tokens", "pass"};

Ink verdict_ink(CellVerdict verdict) {
  switch (verdict) {
    case CellVerdict::broken:
    case CellVerdict::slower:
      return Ink::red;
    case CellVerdict::fixed:
    case CellVerdict::faster:
      return Ink::green;
    case CellVerdict::unclear:
      return Ink::yellow;
    default:
      return Ink::plain;
  }
}

std::string format_metric(const std::string& name, double value) {
  if (name.ends_with("_bytes")) return format_bytes(value);
  if (name.ends_with("_ms")) return format_figure(value) + " ms";
  return format_error(value);
}

std::string interval(const CellComparison& cell) {
  if (!cell.time || !cell.time->low) return "";
  return fmt::format("{:.3f} to {:.3f}", *cell.time->low, *cell.time->high);
}

std::string milliseconds(const std::optional<double>& ms) {
  return ms ? format_figure(*ms) : "-";
}

/// Where a clock moved by less, the ratio in cycles says nothing more.
constexpr double kClockMoved = 0.005;

std::string describe_clock(const CellComparison& cell) {
  if (!cell.clock_ratio) return "";
  const double moved = cell.time->ratio / *cell.clock_ratio;
  if (moved < 1 + kClockMoved && moved > 1 - kClockMoved) return "";
  return fmt::format("{} in clock cycles", format_change(*cell.clock_ratio));
}

constexpr std::size_t kMaxAlikeReasons = 3;
constexpr int kIndent = 11;  ///< of what stands below a cell: where its name begins

/// "2 broken, 1 slower".
std::string counts_text(const std::map<CellVerdict, std::size_t>& counts) {
  std::string text;
  for (const CellVerdict verdict : kShownVerdicts) {
    const auto found = counts.find(verdict);
    if (found == counts.end() || found->second == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", found->second, to_string(verdict));
  }
  return text;
}

/// Whether the verdict is one that no table leaves out.
bool is_certain(const CellComparison* cell) {
  return std::ranges::find(kShownVerdicts, cell->verdict) <
         std::ranges::find(kShownVerdicts, CellVerdict::only_base);
}

/// The columns behind the verdict that fit the terminal, and the width of the cells' names.
struct Columns {
  int name = 4;
  bool times = true;
  bool interval = true;

  std::string row(std::string_view cell, std::string_view base, std::string_view next,
                  std::string_view change, std::string_view ratio) const {
    std::string text = fmt::format("  {:{}}", cell, name);
    if (times) text += fmt::format("  {:>9}  {:>9}", base, next);
    text += fmt::format("  {:>8}", change);
    if (interval) text += fmt::format("  {:14}", ratio);
    return text;
  }
  int width() const { return kIndent - kGap + columns_of(row("", "", "", "", "")); }
};

class ComparisonPrinter {
 public:
  ComparisonPrinter(std::ostream& out, const Comparison& comparison, const TableOptions& options)
      : out_(out),
        text_(out, options),
        width_(options.width),
        comparison_(comparison),
        names_(comparison) {}

  void print(const ComparedNames& names) {
    sentence(fmt::format("{} (base) and {} (new)", printable(names.base), printable(names.next)));
    print_counts();
    print_environment();
    print_cells();
    print_legend();
  }

 private:
  void print_counts() {
    const std::size_t cells = comparison_.cells.size();
    text_.sentence(fmt::format("{}: {}", counted(cells, "cell"), counts_text(comparison_.counts)),
                   kGap, Ink::bold);
    print_failed_alike();
  }

  /// Cells that are the same because they failed in one way in both: no time stands behind that.
  void print_failed_alike() {
    std::map<std::pair<StatusCode, std::string>, std::size_t> counts;
    for (const CellComparison& cell : comparison_.cells) {
      if (cell.verdict != CellVerdict::same || cell.time || !cell.next_status) continue;
      ++counts[{*cell.next_status, cell.reason}];
    }
    std::vector<std::pair<std::size_t, std::string>> failed;  // how many, why
    for (const auto& [why, count] : counts) {
      const auto& [status, reason] = why;
      failed.emplace_back(
          count, fmt::format("{}{}{}", to_string(status), reason.empty() ? "" : ", ", reason));
    }
    std::ranges::stable_sort(failed, std::greater(), [](const auto& why) { return why.first; });
    const std::size_t lines = std::min(failed.size(), kMaxAlikeReasons);
    for (const auto& [count, why] : std::span(failed).first(lines)) {
      text_.sentence(fmt::format("{} of the same ha{} no time in either file: {}", count,
                                 count == 1 ? "s" : "ve", printable(why)));
    }
    std::size_t left = 0;
    for (const auto& [count, why] : std::span(failed).subspan(lines)) left += count;
    if (left == 0) return;
    const std::size_t reasons = failed.size() - lines;
    sentence(fmt::format("and {} of {}", counted(reasons, "more reason"), counted(left, "cell")));
  }

  void print_environment() {
    for (const auto& [name, base, next] : comparison_.environment) {
      text_.sentence(fmt::format("{}: {} → {}", printable(name),
                                 base.empty() ? "-" : printable(base),
                                 next.empty() ? "-" : printable(next)));
    }
  }

  void print_cells() {
    std::vector<const CellComparison*> shown = cells_to_show(comparison_);
    std::erase_if(shown, [](const CellComparison* cell) {
      return cell->verdict == CellVerdict::same && cell->changes.empty();
    });
    if (shown.empty()) return;
    const auto certain = std::ranges::count_if(shown, is_certain);
    const std::size_t lines =
        std::min(shown.size(), std::max(kMaxComparedLines, static_cast<std::size_t>(certain)));
    Columns columns;
    for (std::size_t i = 0; i < lines; ++i)
      widen(columns.name, printable(names_.name(shown[i]->c)));
    // What has no column stands below its cell.
    leave_out({{&columns.interval, ""}, {&columns.times, ""}},
              [&] { return columns.width() <= width_; });
    out_ << '\n';
    text_.line(Ink::bold, fmt::format("{:9}", "verdict") +
                              columns.row("cell", "base ms", "new ms", "change", "ratio, 95 %"));
    for (std::size_t i = 0; i < lines; ++i) print_cell(*shown[i], columns);
    if (shown.size() == lines) return;
    std::map<CellVerdict, std::size_t> left;
    for (const CellComparison* cell : std::span(shown).subspan(lines)) ++left[cell->verdict];
    sentence(
        fmt::format("and {} more: {}; --json has all", shown.size() - lines, counts_text(left)));
  }

  /// What else is to be said stands in the cell's line or, where that would be too long, below it.
  void print_cell(const CellComparison& cell, const Columns& columns) {
    const std::string verdict = fmt::format("{:9}", to_string(cell.verdict));
    const std::string base = milliseconds(cell.base_ms);
    const std::string next = milliseconds(cell.next_ms);
    std::string line =
        columns.row(printable(names_.name(cell.c)), base, next,
                    cell.time ? format_change(cell.time->ratio) : "-", interval(cell));
    std::string changes;
    const auto add = [&](bool is_said, const std::string& text) {
      if (is_said && !text.empty()) changes += (changes.empty() ? "" : "; ") + text;
    };
    add(!columns.times && (cell.base_ms || cell.next_ms), fmt::format("{} → {} ms", base, next));
    add(!columns.interval && cell.time && cell.time->low, "ratio " + interval(cell));
    add(true, printable(describe_changes(cell)));
    const bool fits = columns_of(verdict + line) + kGap + columns_of(changes) <= width_;
    if (fits) line += std::string(kGap, ' ') + changes;
    text_.line(Ink::plain, text_.paint(verdict_ink(cell.verdict), verdict) + line);
    if (fits || changes.empty()) return;
    out_ << with_hanging_indent(std::string(kIndent, ' ') + changes, width_, kIndent) << '\n';
  }

  void print_legend() {
    out_ << '\n';
    sentence(
        "ms: medians of all samples; change: from the mean, in each round, of the samples within "
        "10 "
        "% of the round's median, or of all where more than a third are farther off.");
    sentence(
        fmt::format("A change counts from {:.3g} %; at most 1 % of slower and faster are false.",
                    comparison_.min_effect * 100));
    if (comparison_.busy > 0) {
      sentence(fmt::format(
          "{} ran beside other work on more than {} of a core (host_load): more of these may be "
          "false.",
          counted(comparison_.busy, "cell"), kBusyHost));
    }
    if (comparison_.single_rounds == 0) return;
    sentence(fmt::format(
        "{} of one round: how much processes differ is unknown, so {:.0f} % are taken for it and "
        "no smaller change is told; `--rounds 7` in both runs tells it.",
        counted(comparison_.single_rounds, "cell"), kProcessSpread * 100));
  }

  void sentence(std::string_view text) { text_.sentence(text, kGap); }

  std::ostream& out_;
  TerminalText text_;
  int width_;
  const Comparison& comparison_;
  CellNames names_;
};

nlohmann::ordered_json or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json status_json(const std::optional<StatusCode>& status) {
  if (!status) return nullptr;
  return to_string(*status);
}

nlohmann::ordered_json cell_json(const CellComparison& cell) {
  const auto& time = cell.time;
  nlohmann::ordered_json json{{"key", cell.key},
                              {"verdict", to_string(cell.verdict)},
                              {"ratio", time ? or_null(time->ratio) : nullptr},
                              {"low", time ? or_null(time->low) : nullptr},
                              {"high", time ? or_null(time->high) : nullptr},
                              {"clock_ratio", or_null(cell.clock_ratio)},
                              {"base_ms", or_null(cell.base_ms)},
                              {"new_ms", or_null(cell.next_ms)},
                              {"base_status", status_json(cell.base_status)},
                              {"new_status", status_json(cell.next_status)}};
  if (time) json["over_rounds"] = time->over_rounds;
  if (!cell.reason.empty()) json["reason"] = printable(cell.reason);
  for (const auto& [metric, base, next] : cell.changes) {
    json["changes"].push_back({{"metric", metric}, {"base", base}, {"new", next}});
  }
  return json;
}

}  // namespace

std::vector<const CellComparison*> cells_to_show(const Comparison& comparison) {
  std::vector<const CellComparison*> cells;
  for (const CellComparison& cell : comparison.cells) cells.push_back(&cell);
  const auto place = [](const CellComparison* cell) {
    if (cell->verdict == CellVerdict::same && !cell->changes.empty())
      return std::pair(std::ranges::find(kShownVerdicts, CellVerdict::unclear), 0);
    return std::pair(std::ranges::find(kShownVerdicts, cell->verdict), 1);
  };
  std::ranges::stable_sort(cells, {}, place);
  return cells;
}

CellNames::CellNames(const Comparison& comparison) {
  for (const CellComparison& cell : comparison.cells) short_names_.add(cell.c);
  for (const Axis& axis : axis_table()) {
    std::set<std::string> values;
    for (const CellComparison& cell : comparison.cells) {
      if (values.size() > 1) break;
      values.insert(axis.text(cell.c).value_or(""));
    }
    if (values.size() > 1 || std::ranges::find(kAlwaysNamed, axis.name) != std::end(kAlwaysNamed)) {
      axes_.push_back(axis.name);
    }
  }
}

std::string CellNames::name(const Case& of_cell) const {
  Case c = of_cell;
  short_names_.shorten(c);
  std::string text;
  for (const std::string& axis : axes_) {
    if (const auto value = find_axis(axis).text(c)) text += (text.empty() ? "" : " ") + *value;
  }
  return text;
}

std::string format_change(double ratio) {
  const double percent = (ratio - 1) * 100;
  if (percent > 900) return fmt::format("{:.1f} x", ratio);
  if (std::abs(percent) < 0.05) return "0.0 %";  // not -0.0
  return fmt::format("{:+.1f} %", percent);
}

std::string describe_changes(const CellComparison& cell) {
  std::vector<std::string> parts;
  if (cell.next_status && *cell.next_status != StatusCode::ok) {
    parts.push_back(fmt::format("{}{}{}", to_string(*cell.next_status),
                                cell.reason.empty() ? "" : ": ", cell.reason));
  } else if (cell.verdict == CellVerdict::fixed) {
    parts.push_back(fmt::format("was {}", to_string(*cell.base_status)));
  }
  if (std::string clock = describe_clock(cell); !clock.empty()) parts.push_back(std::move(clock));
  for (const auto& [metric, base, next] : cell.changes) {
    parts.push_back(fmt::format("{} {} → {}", metric, format_metric(metric, base),
                                format_metric(metric, next)));
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

void print_comparison(std::ostream& out, const Comparison& comparison, const ComparedNames& names,
                      const TableOptions& options) {
  ComparisonPrinter(out, comparison, options).print(names);
}

nlohmann::ordered_json comparison_json(const Comparison& comparison, const ComparedNames& names) {
  nlohmann::ordered_json json{
      {"base", names.base}, {"new", names.next}, {"min_effect_pct", comparison.min_effect * 100}};
  for (const CellVerdict verdict : kVerdicts) {
    json["counts"][std::string(to_string(verdict))] = comparison.counts.at(verdict);
  }
  json["environment"] = nlohmann::ordered_json::array();
  for (const auto& [name, base, next] : comparison.environment) {
    json["environment"].push_back({{"name", name}, {"base", base}, {"new", next}});
  }
  json["cells"] = nlohmann::ordered_json::array();
  for (const CellComparison& cell : comparison.cells) json["cells"].push_back(cell_json(cell));
  return json;
}

}  // namespace longca
