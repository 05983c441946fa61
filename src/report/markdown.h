#pragma once

#include <iosfwd>
#include <optional>
#include <span>
#include <string>

#include "bench/record/record.h"
#include "report/dense_comparison.h"

namespace longca {

/// Writes the records as Markdown tables, grouped as on the terminal.
void write_markdown(std::ostream& out, std::span<const Record> records);

/// Writes block-sparse attention compared with dense as Markdown tables, below a heading of level
/// two. Writes nothing for a comparison without tables.
void write_sparse_markdown(std::ostream& out, const DenseComparison& comparison);

/// Text without Markdown markup, inside table cells too.
std::string markdown_escaped(const std::string& text);
/// A name as code, in which underscores need no escape.
std::string markdown_code(const std::string& name);
/// " VALUE |", or " |" without a value.
std::string markdown_cell(const std::optional<double>& value, std::string (*format)(double));

}  // namespace longca
