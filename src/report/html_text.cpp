#include "report/html_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace longca {

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string json_for_script(const nlohmann::json& json) {
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  constexpr std::string_view kLineSeparators = "\xe2\x80";  // U+2028 and U+2029: e2 80 a8, e2 80 a9
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.size() > 2 && rest.starts_with(kLineSeparators) &&
        (rest[2] == '\xa8' || rest[2] == '\xa9')) {
      out += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (text[i] == '<') {
      out += "\\u003c";
    } else if (text[i] == '>') {
      out += "\\u003e";
    } else if (text[i] == '&') {
      out += "\\u0026";
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string script_for_html(std::string_view script) {
  constexpr std::string_view kEnd = "</script";
  const auto is_end = [&](std::string_view text) {
    return text.size() >= kEnd.size() &&
           std::equal(kEnd.begin(), kEnd.end(), text.begin(),
                      [](char a, char b) { return a == b || a == (b | 0x20); });
  };
  std::string out;
  out.reserve(script.size());
  for (std::size_t at = script.find("</"); at != script.npos; at = script.find("</")) {
    out += script.substr(0, at);
    out += is_end(script.substr(at)) ? "<\\/" : "</";
    script.remove_prefix(at + 2);
  }
  out += script;
  return out;
}

std::string fill_template(std::string_view text,
                          const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("{{");
    out += text.substr(0, begin);
    if (begin == text.npos) return out;
    const std::size_t end = text.find("}}", begin);
    LONGCA_CHECK(end != text.npos, "a name of the template does not end");
    const std::string_view name = text.substr(begin + 2, end - begin - 2);
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const auto& value) { return value.first == name; });
    LONGCA_CHECK(found != values.end(), "the template's '{}' has no value", name);
    out += found->second;
    text.remove_prefix(end + 2);
  }
}

}  // namespace longca
