#pragma once

#include <filesystem>
#include <string_view>

namespace longca {

/// Writes a finished view into a file, replacing what is there. Throws InputError naming the file
/// and what the system said.
void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace longca
