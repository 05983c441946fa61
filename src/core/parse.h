#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace longca {

/// A whole number with an optional binary suffix: "4096", "4K" = 4096, "1M" = 1048576. Throws
/// InputError that names `what` and the text.
std::int64_t parse_count(std::string_view what, std::string_view text);

/// A comma list of counts and geometric ranges: "1K,3000" or "1K:64K:x2" (both ends included where
/// the factor meets them). Throws InputError.
std::vector<std::int64_t> parse_counts(std::string_view what, std::string_view text);

/// A finite decimal number. Throws InputError.
double parse_number(std::string_view what, std::string_view text);

}  // namespace longca
