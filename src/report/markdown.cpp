#include "report/markdown.h"

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <string_view>

#include "report/view.h"

namespace longca {
namespace {

/// Text that Markdown takes for nothing but text, inside a table cell too.
std::string escaped(const std::string& text) {
  constexpr std::string_view kMarkup = "\\`*_{}[]<>()#+!|~&$";
  std::string out;
  for (const char c : printable(text)) {
    if (kMarkup.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// A name as code, where underscores need no escape.
std::string code(const std::string& name) {
  std::string text;
  for (const char c : printable(name)) {
    if (c == '|') text += '\\';
    text += c == '`' ? '\'' : c;
  }
  return "`" + text + "`";
}

std::string pass_cells(const View& view, const Record* record, const Record* best) {
  if (record == nullptr) return " | |";
  const auto rate = metric_of(record, "tflops");
  const auto time = metric_of(record, "time_ms");
  if (!record->status.ok() || !rate) {
    return fmt::format(" {} | |", to_string(record->status.code));
  }
  const std::string figure = format_figure(*rate * view.unit.per_tflops);
  return fmt::format(" {0}{1}{0} | {2} |", record == best ? "**" : "", figure,
                     time ? format_figure(*time) : "");
}

std::string optional_cell(const std::optional<double>& value, std::string (*format)(double)) {
  return value ? fmt::format(" {} |", format(*value)) : " |";
}

std::string row_line(const View& view, const ViewGroup& group, const ViewRow& row) {
  std::string mask = code(group.mask);
  if (!group.setting.empty()) mask += ' ' + escaped(join_axes(group.setting, ", "));
  std::string line =
      fmt::format("| {} | {} | {} |", mask, format_tokens(group.tokens), code(row.kernel));
  std::optional<double> error;
  std::optional<double> memory;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const Record* record = row.pass(pass);
    if (view.has(pass)) line += pass_cells(view, record, group.best(pass));
    if (const auto e = largest_error(record)) error = std::max(error.value_or(0), *e);
    if (const auto m = metric_of(record, "peak_bytes")) memory = std::max(memory.value_or(0), *m);
  }
  return line + optional_cell(error, format_error) + optional_cell(memory, format_bytes);
}

void write_section(std::ostream& out, const View& view, const ViewSection& section) {
  out << '\n';
  if (!section.setting.empty())
    out << "## " << escaped(join_axes(section.setting, " · ")) << "\n\n";
  std::string titles = "| mask | tokens | kernel |";
  std::string rule = "|---|--:|---|";
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    if (!view.has(pass)) continue;
    titles += fmt::format(" {} {} | ms |", to_string(pass), view.unit.name);
    rule += "--:|--:|";
  }
  out << titles << " error | memory |\n" << rule << "--:|--:|\n";
  for (const ViewGroup& group : section.groups) {
    for (const ViewRow& row : group.rows) out << row_line(view, group, row) << '\n';
  }
}

}  // namespace

void write_markdown(std::ostream& out, std::span<const Record> records) {
  const std::vector<Record> latest = latest_records(records);
  const View view = make_view(latest);
  out << "# longca-bench\n\n" << describe_counts(view) << ".";
  if (!view.common.empty()) out << ' ' << escaped(join_axes(view.common, " · ")) << '.';
  const std::string machine = latest.empty() ? "" : describe_machine(latest.back());
  if (!machine.empty()) out << ' ' << escaped(machine) << '.';
  out << " Bold: fastest of its mask and length. Error: largest relative error of O, dQ, dK, dV "
         "against the float64 reference.\n";
  for (const ViewSection& section : view.sections) write_section(out, view, section);
  const std::vector<Reason> reasons = collect_reasons(view);
  if (reasons.empty()) return;
  out << "\n## Cells without a number\n\n| kernel | status | cells | reason |\n|---|---|--:|---|\n";
  for (const Reason& reason : reasons) {
    out << fmt::format("| {} | {} | {} | {} |\n", code(reason.kernel), to_string(reason.code),
                       reason.cells, escaped(reason.sentence));
  }
}

}  // namespace longca
