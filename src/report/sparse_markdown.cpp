#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "report/markdown.h"

namespace longca {
namespace {

std::string heading_of(const DensityTable& table) {
  std::string heading = markdown_code(table.mask) + ", " + std::string(to_string(table.pass));
  if (!table.setting.empty()) heading += " · " + markdown_escaped(join_axes(table.setting, " · "));
  return heading;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string mass(double share) {
  return fmt::format("{:.3f}", share);
}

/// The rate and the ratio "0.249", bold for the fastest kernels; the status if there is no number.
std::string ratio_cells(const DenseComparison& comparison, const DensityGroup& group,
                        const Record* cell, bool has_selection) {
  const std::string_view others = has_selection ? " | |" : " |";
  const auto rate = metric_of(cell, "tflops");
  if (cell == nullptr || !cell->status.ok() || !rate) {
    return fmt::format(" {} |{}", cell == nullptr ? "" : to_string(cell->status.code), others);
  }
  const auto ratio = time_of_dense(cell, group.dense);
  const bool is_bold = ratio && group.is_marked(cell);
  std::string text =
      fmt::format(" {} | {}{}{} |", format_figure(*rate * comparison.unit.per_tflops),
                  is_bold ? "**" : "", ratio ? format_figure(*ratio) : "", is_bold ? "**" : "");
  if (has_selection) {
    text += markdown_cell(end_to_end_of_dense(cell, group.dense), format_figure);
  }
  return text;
}

/// The dense kernel's own row; its memory stands in the column of the others'.
std::string dense_row(const DenseComparison& comparison, const DensityTable& table,
                      const DensityGroup& group, bool has_selection) {
  std::string line = fmt::format("| {} |", format_tokens(group.tokens));
  if (group.dense == nullptr) {
    line += " no dense kernel was measured";
  } else {
    line += fmt::format(" dense: {}, {}, {} ms", markdown_code(group.dense->c.kernel),
                        markdown_code(group.dense->c.mask),
                        format_figure(*metric_of(group.dense, "time_ms")));
    if (const auto rate = metric_of(group.dense, "tflops")) {
      line += fmt::format(", {} {}", format_figure(*rate * comparison.unit.per_tflops),
                          comparison.unit.name);
    }
    if (const std::string other = group.dense_difference(); !other.empty()) line += ", " + other;
  }
  const std::size_t columns = table.densities.size() * (has_selection ? 3 : 2);
  for (std::size_t i = 0; i < columns; ++i) line += " |";
  return line + (has_selection ? " | | |" : " | |") +
         markdown_cell(metric_of(group.dense, "peak_bytes"), format_bytes);
}

std::string line_row(const DenseComparison& comparison, const DensityTable& table,
                     const DensityGroup& group, const DensityLine& line, bool has_selection) {
  std::string text =
      fmt::format("| {} | {} |", format_tokens(group.tokens), markdown_code(line.kernel));
  std::optional<double> memory;
  for (const double density : table.densities) {
    const Record* cell = line.at(density);
    text += ratio_cells(comparison, group, cell, has_selection);
    keep_larger(memory, metric_of(cell, "peak_bytes"));
  }
  text += fmt::format(" {} |", describe_break_even(line.kernel_time));
  if (has_selection) text += fmt::format(" {} |", describe_break_even(line.end_to_end));
  return text + markdown_cell(memory, format_bytes);
}

void write_table(std::ostream& out, const DenseComparison& comparison, const DensityTable& table,
                 bool has_selection) {
  out << "\n### " << heading_of(table) << "\n\n| tokens | kernel |";
  std::string rule = "|--:|---|";
  for (const double density : table.densities) {
    const std::string at = format_density(density);
    out << fmt::format(" {}: {} | ÷ dense |", at, comparison.unit.name);
    rule += "--:|--:|";
    if (has_selection) {
      out << " total |";
      rule += "--:|";
    }
  }
  out << (has_selection ? " break-even | break-even of total | memory |\n"
                        : " break-even | memory |\n")
      << rule << (has_selection ? "---|---|--:|\n" : "---|--:|\n");
  for (const DensityGroup& group : table.groups) {
    if (!group.has_number()) continue;
    out << dense_row(comparison, table, group, has_selection) << '\n';
    for (const DensityLine& line : group.lines) {
      if (!line.has_number()) continue;
      out << line_row(comparison, table, group, line, has_selection) << '\n';
    }
  }
}

/// Speed and quality: the fastest kernel of each density, and the mass that its blocks keep.
void write_costs(std::ostream& out, const DensityTable& table) {
  out << "\n| tokens | density | kept mass | error of full | fastest kernel | ÷ dense | total | "
         "selection ms | of total |\n|--:|--:|--:|--:|---|--:|--:|--:|--:|\n";
  for (const DensityGroup& group : table.groups) {
    for (const double density : table.densities) {
      const Record* cell = group.fastest(density);
      if (cell == nullptr) continue;
      out << fmt::format("| {} | {} |", format_tokens(group.tokens), format_density(density))
          << markdown_cell(group.metric_at(density, "kept_mass"), mass)
          << markdown_cell(group.largest_at(density, "error_full"), format_figure)
          << fmt::format(" {} |", markdown_code(cell->c.kernel))
          << markdown_cell(time_of_dense(cell, group.dense), format_figure)
          << markdown_cell(end_to_end_of_dense(cell, group.dense), format_figure)
          << markdown_cell(metric_of(cell, "selection_ms"), format_figure)
          << markdown_cell(selection_share(cell), percent) << '\n';
    }
  }
}

}  // namespace

void write_sparse_markdown(std::ostream& out, const DenseComparison& comparison) {
  if (comparison.tables.empty()) return;
  out << "\n## Block-sparse attention beside dense\n\n";
  if (!comparison.common.empty()) {
    out << markdown_escaped(join_axes(comparison.common, " · ")) << ". ";
  }
  out << "÷ dense: time, divided by that of the fastest dense kernel of the same length, heads and "
         "pass; bold: the fastest of its density, or a tie with it (within 1 %, or 95 % intervals "
         "overlap). Break-even: the density up to which a kernel is "
         "faster than dense, interpolated between those measured; always, never: at all of them.";
  if (comparison.has("end_to_end_ms")) {
    out << " Total: selection, planning and kernel, divided by the same dense time.";
  }
  if (comparison.has("kept_mass")) {
    out << " Kept mass: share of full attention's probability that lies in the kept blocks; error "
           "of full: relative error of O against full attention.";
  }
  out << " Memory: the peak, largest of the densities. Kernels without a number are left out "
         "here.\n";
  for (const DensityTable& table : comparison.tables) {
    if (!table.has_number()) continue;
    write_table(out, comparison, table, table.has("end_to_end_ms"));
    if (table.has("kept_mass") || table.has("selection_ms")) write_costs(out, table);
  }
}

}  // namespace longca
