#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace longca {

/// A gnuplot string literal of any text: single-quoted, where gnuplot expands nothing (no escapes,
/// no macros, no shell commands). Control characters become spaces and ' becomes U+2019: gnuplot 5
/// reads doubled quotes in some places only.
std::string gnuplot_quoted(std::string_view text);

/// Runs a script that draws into `file`, whose suffix chooses the format (.png, .svg, .pdf),
/// `width` by `height` pixels of a 96 dpi screen. Throws InputError for another suffix, if gnuplot
/// is not installed (the sentence names the package), if the file cannot be written, or if gnuplot
/// complains.
void draw_with_gnuplot(const std::filesystem::path& file, int width, int height,
                       const std::string& script);

}  // namespace longca
