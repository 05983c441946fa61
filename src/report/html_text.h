#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longca {

/// Text as HTML, inside elements and quoted attributes.
std::string html_escaped(std::string_view text);

/// JSON for a <script> element: no `<`, `>`, `&`, U+2028 or U+2029 stands in it unescaped.
std::string json_for_script(const nlohmann::json& json);

/// JavaScript for a <script> element, which ends at the first "</script" even inside a string.
std::string script_for_html(std::string_view script);

/// The template with each {{name}} replaced; replaced text is not looked at again. LONGCA_CHECKs
/// that every name is given.
std::string fill_template(std::string_view text,
                          const std::vector<std::pair<std::string_view, std::string>>& values);

}  // namespace longca
