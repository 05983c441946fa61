#pragma once

#include <string_view>

namespace longca {

/// Whether the text is a date and time of RFC 3339 that the calendar has, such as
/// 2026-05-01T10:00:00Z or 2026-05-01T12:00:00.25+02:00.
bool is_rfc3339(std::string_view text);

}  // namespace longca
