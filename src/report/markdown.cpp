#include "report/markdown.h"

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <string_view>

#include "core/printable.h"
#include "report/data/ranking.h"
#include "report/ranks_metrics.h"
#include "report/scheme_names.h"
#include "report/view.h"

namespace longca {
namespace {

/// " ?" for a mark, "" for none.
std::string marked(std::string_view mark) {
  return mark.empty() ? "" : ' ' + markdown_escaped(std::string(mark));
}

std::string pass_cells(const View& view, const Record* record, bool is_marked) {
  if (record == nullptr) return " | |";
  const auto rate = metric_of(record, "tflops");
  const auto time = metric_of(record, "time_ms");
  if (!record->status.ok() || !rate) {
    return fmt::format(" {} | |", to_string(record->status.code));
  }
  const std::string figure = format_figure(*rate * view.unit.per_tflops);
  return fmt::format(" {0}{1}{0} | {2} |", is_marked ? "**" : "", figure,
                     time ? format_figure(*time) + marked(interval_mark(*record)) : "");
}

constexpr std::string_view kTies = " (ties share it: within 1 %, or by their intervals). ";
constexpr std::string_view kMarks =
    "~: the time limit came before the 95 % interval was within 0.5 %; ?: too few repetitions for "
    "an interval. ";

constexpr std::string_view kSpreadSentence =
    "Spread: standard deviation of the rates of several seeds, whose FLOPs and times are summed. ";

/// "`sliding_window` window 512".
std::string mask_cell(const ViewGroup& group) {
  std::string mask = markdown_code(group.mask);
  if (group.setting.empty()) return mask;
  return mask + ' ' + markdown_escaped(join_axes(group.setting, ", "));
}

std::string row_line(const View& view, const ViewGroup& group, const PassRankings& rankings,
                     const ViewRow& row) {
  std::string line = fmt::format("| {} | {} | {} |", mask_cell(group), format_tokens(group.tokens),
                                 markdown_code(row.kernel));
  for (const Pass pass : kPasses) {
    if (view.has(pass)) line += pass_cells(view, row.pass(pass), rankings.is_marked(row, pass));
  }
  if (view.has_draws) line += markdown_cell(spread_of(row), format_spread);
  return line + markdown_cell(largest_error(row), format_error) +
         markdown_cell(memory_of(view, row), format_bytes);
}

void write_section_heading(std::ostream& out, const ViewSection& section, const char* level) {
  out << '\n';
  if (section.setting.empty()) return;
  out << level << ' ' << markdown_escaped(join_axes(section.setting, " · ")) << "\n\n";
}

void write_section(std::ostream& out, const View& view, const ViewSection& section) {
  write_section_heading(out, section, "##");
  std::string titles = "| mask | tokens | kernel |";
  std::string rule = "|---|--:|---|";
  for (const Pass pass : kPasses) {
    if (!view.has(pass)) continue;
    titles += fmt::format(" {} {} | ms |", to_string(pass), view.unit.name);
    rule += "--:|--:|";
  }
  if (view.has_draws) {
    titles += " spread |";
    rule += "--:|";
  }
  out << titles << " error | memory |\n" << rule << "--:|--:|\n";
  for (const ViewGroup& group : section.groups) {
    const PassRankings rankings(group);
    for (const ViewRow& row : group.rows) out << row_line(view, group, rankings, row) << '\n';
  }
}

void write_head(std::ostream& out, const View& view, std::span<const Record> records) {
  out << describe_counts(view) << ".";
  if (!view.common.empty()) out << ' ' << markdown_escaped(join_axes(view.common, " · ")) << '.';
  const std::string machine = describe_origins(records);
  if (!machine.empty()) out << ' ' << markdown_escaped(machine) << '.';
}

void write_reasons(std::ostream& out, const View& view, std::string_view heading) {
  const std::vector<Reason> reasons = collect_reasons(view);
  if (reasons.empty()) return;
  out << '\n'
      << heading
      << " Cells without a number\n\n| kernel | status | cells | reason |\n|---|---|--:|---|\n";
  for (const Reason& reason : reasons) {
    std::vector<std::string> kernels;
    for (const std::string& kernel : reason.kernels) kernels.push_back(markdown_code(kernel));
    out << fmt::format("| {} | {} | {} | {} |\n", join_kernels(kernels), to_string(reason.code),
                       reason.cells, markdown_escaped(reason.sentence));
  }
}

void write_single(std::ostream& out, std::span<const Record> records) {
  const View view = make_view(records);
  write_head(out, view, records);
  out << " Bold: fastest of its mask and length" << kTies << kMarks << "Memory: peak of the "
      << to_string(memory_pass(view)) << " pass. " << (view.has_draws ? kSpreadSentence : "")
      << "Error: largest relative error of O, dQ, dK, dV against the float64 reference.\n";
  for (const ViewSection& section : view.sections) write_section(out, view, section);
  write_sparse_markdown(out, compare_with_dense(records));
  write_reasons(out, view, "##");
}

constexpr std::size_t kRanksPassColumns = 6;

/// A pass's cells: rate, efficiency, ms, exposed communication, bytes sent, bytes by formula.
std::string ranks_pass_cells(const View& view, const Baselines& baselines, const Record* record,
                             bool is_marked) {
  const auto rate = metric_of(record, "tflops");
  if (record == nullptr || !record->status.ok() || !rate) {
    std::string text = record == nullptr ? "" : fmt::format(" {}", to_string(record->status.code));
    for (std::size_t i = 0; i < kRanksPassColumns; ++i) text += " |";
    return text;
  }
  const auto shown = [](const std::optional<double>& value, auto format) {
    return value ? format(*value) : std::string();
  };
  const auto bytes = [](double count) { return fmt::format("{:.0f}", count); };
  const Baseline baseline = baselines.of(*record);
  const auto percent = exposed_percent(record);
  return fmt::format(
      " {0}{1}{0} | {2} | {3} | {4}{5} | {6} | {7} {8} |", is_marked ? "**" : "",
      format_figure(*rate * view.unit.per_tflops),
      baseline.same_work ? fmt::format("{:.2f}", *rate / baseline.tflops) : "",
      shown(metric_of(record, "time_ms"), format_figure) + marked(interval_mark(*record)),
      shown(metric_of(record, "exposed_comm_ms"), format_figure),
      percent ? fmt::format(" ({} %)", format_percent(*percent)) : "",
      shown(metric_of(record, "bytes_sent"), bytes), mark_of(check_bytes(record)),
      shown(metric_of(record, "bytes_formula"), bytes));
}

void write_ranks_section(std::ostream& out, const View& view, const Baselines& baselines,
                         const ViewSection& section) {
  write_section_heading(out, section, "###");
  std::string titles = "| mask | tokens | ranks | scheme | shard | kernel |";
  std::string rule = "|---|--:|--:|---|---|---|";
  for (const Pass pass : kPasses) {
    if (!view.has(pass)) continue;
    titles += fmt::format(" {} {} | efficiency | ms | exposed ms | sent | formula |",
                          to_string(pass), view.unit.name);
    rule += "--:|--:|--:|--:|--:|--:|";
  }
  if (view.has_draws) {
    titles += " spread |";
    rule += "--:|";
  }
  out << titles << " imbalance | memory | error |\n" << rule << "--:|--:|--:|\n";
  for (const ViewGroup& group : section.groups) {
    const PassRankings rankings(group);
    for (const ViewRow& row : group.rows) {
      out << fmt::format("| {} | {} | {} | {} | {} | {} |", mask_cell(group),
                         format_tokens(group.tokens), group.ranks, markdown_code(row.scheme),
                         markdown_escaped(row.c().shard.value_or("")), markdown_code(row.kernel));
      for (const Pass pass : kPasses) {
        if (view.has(pass)) {
          out << ranks_pass_cells(view, baselines, row.pass(pass), rankings.is_marked(row, pass));
        }
      }
      if (view.has_draws) out << markdown_cell(spread_of(row), format_spread);
      out << markdown_cell(largest_of(row, "imbalance"),
                           [](double ratio) { return fmt::format("{:.3f}", ratio); })
          << markdown_cell(memory_of(view, row), format_bytes)
          << markdown_cell(largest_error(row), format_error) << '\n';
    }
  }
}

void write_over_ranks(std::ostream& out, const SplitRecords& split) {
  const View view = make_view(split.over_ranks);
  const Baselines baselines(split.single, split.over_ranks);
  write_head(out, view, split.over_ranks);
  for (const std::string& setting : scheme_settings(split.over_ranks)) {
    out << ' ' << markdown_escaped(setting) << '.';
  }
  out << ' ' << view.unit.name
      << " are per rank; bold: fastest of its mask, length and number of ranks" << kTies << kMarks
      << "Efficiency: rate divided by the same kernel's for the same work on one device, or on one "
         "rank, which "
         "on a CPU is divided by the ranks. Exposed: time that communication adds to the ranks' "
         "steps, and its share. Sent: "
         "bytes by the rank that sends most in one pass; = equals the formula to the byte, ≠ does "
         "not. Imbalance: allowed cells that a rank computes, largest over mean. Memory: "
      << to_string(memory_pass(view)) << ", of the rank that needs most. "
      << (view.has_draws ? kSpreadSentence : "") << "Error: as on one device.\n";
  for (const ViewSection& section : view.sections) {
    write_ranks_section(out, view, baselines, section);
  }
  write_reasons(out, view, "###");
}

}  // namespace

void write_markdown(std::ostream& out, std::span<const Record> records) {
  const SplitRecords split = split_records(records);
  out << "# longca-bench\n\n";
  if (!split.single.empty() || split.over_ranks.empty()) write_single(out, split.single);
  if (split.over_ranks.empty()) return;
  out << (split.single.empty() ? "" : "\n") << "## Context parallelism\n\n";
  write_over_ranks(out, split);
}

std::string markdown_escaped(const std::string& text) {
  constexpr std::string_view kMarkup = "\\`*_{}[]<>()#+!|~&$";
  std::string out;
  for (const char c : printable(text)) {
    if (kMarkup.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_code(const std::string& name) {
  std::string text;
  for (const char c : printable(name)) {
    if (c == '|') text += '\\';
    text += c == '`' ? '\'' : c;
  }
  return "`" + text + "`";
}

std::string markdown_cell(const std::optional<double>& value, std::string (*format)(double)) {
  return value ? fmt::format(" {} |", format(*value)) : " |";
}

}  // namespace longca
