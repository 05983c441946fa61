#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace longca {

/// Quotes any text as a gnuplot string. gnuplot expands nothing inside single quotes: no escapes,
/// no macros, no shell commands. The text is made `printable`, and ' becomes U+2019, because
/// gnuplot 5 reads doubled quotes in some places only. Characters from U+2E80 on (CJK, emoji)
/// become '?': where no font has them, PNG shows one glyph as large as the figure.
std::string gnuplot_quoted(std::string_view text);

/// A figure takes a tenth of a second.
inline constexpr std::chrono::seconds kGnuplotDeadline{60};

/// Runs a script that draws into `file`, `width` by `height` pixels of a 96 dpi screen. The suffix
/// chooses the format: .png, .svg or .pdf. gnuplot sees neither the user's start-up files nor
/// variables, and has until the deadline. Throws InputError for another suffix, if gnuplot is not
/// installed (the message names the package), if the file cannot be written, or if gnuplot fails or
/// does not end.
void draw_with_gnuplot(const std::filesystem::path& file, int width, int height,
                       const std::string& script,
                       std::chrono::milliseconds deadline = kGnuplotDeadline);

}  // namespace longca
