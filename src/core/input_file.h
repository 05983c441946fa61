#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace longca {

/// What some editors begin a text of UTF-8 with; no part of it.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// The contents of a file that the user hands in, without a byte order mark. `what` is its kind in
/// messages: "hostfile". Throws InputError, or SystemError, if it cannot be read, is no regular
/// file (other processes of a run read it anew, and a pipe may never end) or has more than
/// `max_bytes`.
std::string read_input_file(std::string_view what, const std::filesystem::path& path,
                            std::size_t max_bytes);

}  // namespace longca
