#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longca {

// The files of src/report/html, which CMake compiles into the program.
extern const std::string_view kPageHtml;
extern const std::string_view kIndexHtml;  ///< of a folder of plots
extern const std::string_view kComparisonHtml;
extern const std::string_view kStyleCss;
extern const std::string_view kPlotlyScript;  ///< runs the packed plotly
extern const std::string_view kPageScript;    ///< all scripts, in the order of their dependencies

/// Text, made `printable`, as HTML: inside elements and quoted attributes.
std::string html_escaped(std::string_view text);

/// JSON for a <script> element: its texts are made `printable`, and `<`, `>`, `&` are escaped.
std::string json_for_script(nlohmann::json json);

/// JavaScript for a <script> element, which ends at the first "</script" even inside a string.
std::string script_for_html(std::string_view script);

/// plotly.min.js so that V8 reads it once. Its wrapper takes the library as a function without
/// parentheses, which V8 first only scans for errors and reads again when it is called. A script
/// with another wrapper is left as it is.
std::string compiled_at_once(std::string plotly);

/// Bytes as base64 (RFC 4648) of a zlib stream (RFC 1950), which the page's scripts unpack.
std::string packed_for_html(std::string_view bytes);

/// Replaces each {{name}} of the template once; values are not expanded again. LONGCA_CHECKs that
/// every name has a value.
std::string fill_template(std::string_view text,
                          const std::vector<std::pair<std::string_view, std::string>>& values);

}  // namespace longca
