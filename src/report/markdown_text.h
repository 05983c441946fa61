#pragma once

#include <optional>
#include <string>

namespace longca {

/// Text that Markdown takes for nothing but text, inside a table cell too.
std::string markdown_escaped(const std::string& text);
/// A name as code, where underscores need no escape.
std::string markdown_code(const std::string& name);
/// " VALUE |", or " |" where there is none.
std::string markdown_cell(const std::optional<double>& value, std::string (*format)(double));

}  // namespace longca
