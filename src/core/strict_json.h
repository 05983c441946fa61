#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace longca {

/// Parses JSON of a file that this program did not write. Throws InputError for what is no JSON
/// (naming line and column), what the parser would accept silently (a key that is there twice, a
/// number out of range), and values nested deeper than `max_depth`, before they exhaust the stack.
nlohmann::json parse_strict_json(std::string_view text, int max_depth);

/// Whether the text is the beginning of an object or array, in any byte of it, whose end is
/// missing: what is there is right.
bool is_cut_json(std::string_view text);

}  // namespace longca
