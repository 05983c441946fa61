#pragma once

#include <string_view>

namespace longca {

/// The files of src/report/html, carried in the program.
extern const std::string_view kPageHtml;
extern const std::string_view kStyleCss;
/// All scripts, in the order that they need each other.
extern const std::string_view kPageScript;

}  // namespace longca
