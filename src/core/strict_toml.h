#pragma once

#include <toml++/toml.h>

#include <cstddef>
#include <string_view>

namespace longca {

/// A file of TOML has at most so many bytes.
inline constexpr std::size_t kMaxTomlBytes = std::size_t{1} << 20;

/// Parses TOML of a file that this program did not write. `path` names it in errors: "s.toml:2:8".
/// Throws InputError with line and column for a syntax error, and for more than kMaxTomlBytes or
/// keys and values nested deeper than 16, before they exhaust the parser's stack.
toml::table parse_strict_toml(std::string_view text, std::string_view path);

}  // namespace longca
