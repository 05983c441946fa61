#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>

#include "bench/record/record.h"

namespace longca {

/// Writes the records as one self-contained page: interactive plots, pictures of the masks, the
/// table of cells with their reasons, the environment. Without plotly.min.js (find_plotly_js) the
/// page has no plots; a warning says so at its top and on stderr. Throws InputError if the file
/// cannot be written.
void write_html(std::span<const Record> records, const std::filesystem::path& path);
/// Writes the same page to a stream.
void write_html(std::ostream& out, std::span<const Record> records);

/// The page's HTML. `plotly` is the text of plotly.min.js; without it the page has no plots.
std::string render_html(std::span<const Record> records, const std::optional<std::string>& plotly);

}  // namespace longca
