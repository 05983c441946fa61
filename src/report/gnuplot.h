#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace longca {

/// A gnuplot string literal of any text: single-quoted, where gnuplot expands nothing (no escapes,
/// no macros, no shell commands), control characters as spaces.
std::string gnuplot_quoted(std::string_view text);

/// "set terminal …; set output …" for the format that the file's suffix names, in pixels of a 96
/// dpi screen. Throws InputError for a suffix other than .png, .svg and .pdf.
std::string gnuplot_output(const std::filesystem::path& file, int width, int height);

/// Runs a script. Throws InputError if gnuplot is not installed (the sentence names the package) or
/// reports an error, such as an output that cannot be written.
void run_gnuplot(const std::string& script);

}  // namespace longca
