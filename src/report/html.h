#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>

#include "bench/record/record.h"

namespace longca {

/// Writes the records as one self-contained page: interactive plots, pictures of the masks, the
/// table of cells with their reasons, the environment. Without plotly.min.js (see find_plotly_js)
/// the page has no plots, and says so at its top and on stderr. Throws InputError if the file
/// cannot be written.
void write_html(std::span<const Record> records, const std::filesystem::path& path);
/// The same to a stream.
void write_html(std::ostream& out, std::span<const Record> records);

/// The page's text. `plotly` is the text of plotly.min.js, or nothing for a page without plots.
std::string render_html(std::span<const Record> records, const std::optional<std::string>& plotly);

}  // namespace longca
