#include "report/markdown_text.h"

#include <fmt/format.h>

#include <string_view>

#include "report/format.h"

namespace longca {

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
